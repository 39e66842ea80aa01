/* The servers that `baton-bench-web` measures, each in a process and on a thread of its own.
 *
 * Each answers GET / with bench_page, and echoes the texts of a WebSocket at /. It listens on a
 * port of 127.0.0.1 that the kernel chooses, writes that port, an int, to `port_fd`, and serves
 * until it is killed.
 */
#ifndef BENCH_WEB_SERVERS_H
#define BENCH_WEB_SERVERS_H

enum { PAGE_BYTES = 1024, ECHO_MAX = 65536, CLIENTS_MAX = 1000 };

extern char bench_page[PAGE_BYTES];

void serve_baton(int port_fd);
void serve_libwebsockets(int port_fd); /* built if libwebsockets-dev is installed */
void serve_libmicrohttpd(int port_fd); /* built if libmicrohttpd-dev is installed; no WebSockets */

/* Writes the port, or ends the process. */
void report_port(int port_fd, int port);

#endif
