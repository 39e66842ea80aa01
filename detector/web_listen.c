#include "detector/web_listen.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

struct lws_context *web_begin(uv_loop_t *loop, struct lws_context_creation_info *info)
{
    void *loops[] = {loop};
    struct lws_context *context;

    info->port = CONTEXT_PORT_NO_LISTEN;
    info->options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                    LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN;
    info->foreign_loops = loops;
    info->gid = -1;
    info->uid = -1;
    lws_set_log_level(0, NULL);
    context = lws_create_context(info);
    info->foreign_loops = NULL;
    return context;
}

static struct lws_vhost *listen_at(struct lws_context *context,
                                   struct lws_context_creation_info *info, const char *host)
{
    struct in_addr v4;
    struct lws_vhost *vhost;

    info->iface = host && strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (info->iface && inet_pton(AF_INET, info->iface, &v4) == 1) {
        info->options |= LWS_SERVER_OPTION_DISABLE_IPV6;
    }
    info->options |= LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
    vhost = lws_create_vhost(context, info);
    return vhost && lws_get_vhost_listen_port(vhost) > 0 ? vhost : NULL;
}

/* Gives the context something to close, so that it ends like one that has served. */
static void listen_for_nobody(struct lws_context *context, struct lws_context_creation_info info)
{
    info.port = 0;
    info.vhost_name = "nobody";
    info.options &= ~(uint64_t)LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.ssl_cert_filepath = info.ssl_private_key_filepath = NULL;
    (void)listen_at(context, &info, "127.0.0.1");
}

struct lws_vhost *web_listen(struct lws_context *context, struct lws_context_creation_info *info,
                             const char *host)
{
    struct lws_vhost *vhost = listen_at(context, info, host);

    if (!vhost) {
        listen_for_nobody(context, *info);
    }
    return vhost;
}

static void count_closing(uv_handle_t *handle, void *count)
{
    *(unsigned *)count += uv_is_closing(handle) != 0;
}

void web_finish_closing(uv_loop_t *loop)
{
    unsigned closing;

    do { /* what is closed by a callback of another takes one more turn */
        closing = 0;
        (void)uv_run(loop, UV_RUN_NOWAIT);
        uv_walk(loop, count_closing, &closing);
    } while (closing > 0);
}
