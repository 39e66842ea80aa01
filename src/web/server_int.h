/* Shared by the files of server.h. */
#ifndef WEB_SERVER_INT_H
#define WEB_SERVER_INT_H

#include "net/listener.h"
#include "web/server.h"
#include "web/socket_int.h"

/*   READS ──request──▶ ANSWERS ──web_answer──▶ DRAINS ──taken──▶ READS, or ENDS if it is the last
 *     │                   └────web_begin──▶ STREAMS ──web_finish──▶ DRAINS
 *     │                   └────web_socket_open──▶ SOCKET ──closed by both──▶ ENDS
 *     └──refused──▶ ENDS */
enum phase {
    PHASE_READS,   /* a request, or waits for one */
    PHASE_ANSWERS, /* waits for web_answer() or web_begin() */
    PHASE_STREAMS, /* waits for web_part() or web_finish() */
    PHASE_DRAINS,  /* the answer is complete, and the socket has not taken all of it */
    PHASE_SOCKET,  /* a WebSocket */
    PHASE_ENDS,    /* all is sent; what still comes is dropped until the client hangs up */
};

/* One connection. */
struct web_exchange {
    struct web_exchange *prev, *next; /* in `exchanges` of the server, the oldest first */
    struct web_server *server;
    struct stream *stream;
    struct web_request request;
    struct buffer ahead;       /* bytes that came behind the request that is being answered */
    struct web_socket *socket; /* NULL: it is none */
    enum phase phase;
    bool is_leaving;  /* closed, for another one's room */
    bool is_parsing;  /* web_exchange_parse() runs */
    bool is_paused;   /* nothing is read, because `ahead` is full */
    bool is_last;     /* the connection ends after this answer */
    bool is_chunked;  /* the answer in parts */
    bool wants_drain; /* on_drain is due: it is in `draining` of the server */
    struct web_exchange *drain_prev, *drain_next;
    unsigned ticks; /* until the connection is closed; 0: never */
    size_t dropped; /* bytes, while it ends */
    void *userdata;
};

struct web_server {
    struct web_config config;
    struct tls *tls; /* NULL: in the clear */
    struct listener *listener;
    int port;
    uv_timer_t ticker, soon;
    struct web_exchange *exchanges, *draining;
    unsigned count;
    bool is_closing;
};

/* Returns 0 or a negative errno. */
int web_listen(struct listener **ret, const struct listener_options *options, const char *host,
               int port);

/* A new connection, whose descriptor it takes. */
void web_exchange_accept(struct web_server *server, int fd);
/* Reads as many requests as can be answered now. */
void web_exchange_parse(struct web_exchange *exchange, const void *data, size_t bytes);
/* The socket has taken all of the answer. */
void web_exchange_over(struct web_exchange *exchange);
void web_exchange_tick(struct web_exchange *exchange);
/* All is said by both sides, or the client is refused. */
void web_exchange_end(struct web_exchange *exchange);
/* Calls on_drain soon, from outside the caller's functions. */
void web_exchange_drain_soon(struct web_exchange *exchange);

#endif
