#include "servers.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_bytes, void **state)
{
    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    *upload_bytes = 0;
    if (*state == NULL) { /* the head alone is here: an answer now would end the connection */
        *state = connection;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, userdata);
}

void serve_libmicrohttpd(int port_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Response *page =
        MHD_create_response_from_buffer(PAGE_BYTES, bench_page, MHD_RESPMEM_PERSISTENT);
    struct MHD_Daemon *server = NULL;
    const union MHD_DaemonInfo *port;

    if (page != NULL && MHD_add_response_header(page, "content-type", "text/plain") == MHD_YES) {
        server = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, page,
                                  MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
                                  MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX, MHD_OPTION_END);
    }
    port = server != NULL ? MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (port == NULL) {
        (void)fprintf(stderr, "libmicrohttpd: cannot listen\n");
        exit(1);
    }
    report_port(port_fd, port->port);
    for (;;) {
        (void)pause(); /* its own thread serves */
    }
}
