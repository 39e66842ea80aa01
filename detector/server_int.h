/* What the files of server.h share. */
#ifndef DETECTOR_SERVER_INT_H
#define DETECTOR_SERVER_INT_H

#include "base/clock.h"
#include "detector/server.h"
#include "web/upgrade.h"

enum {
    CONNECTIONS_SPARE = 1536, /* besides WebSockets: requests, and handshakes that get an answer */
    HEAD_WITHIN_S = 10,
    READ_WITHIN_S = 30,
    ANSWER_WITHIN_S = 30, /* of REPLY_LATER */
    PING_AFTER_S = 20,
    QUERY_MAX = 512,
    REASON_MAX = 123,
    CLOSE_TRY_AGAIN_LATER = 1013,
};

/* A message was sent, and its arrival is to be reported. */
struct receipt {
    struct receipt *next;
    uint64_t end; /* so many bytes of the connection have arrived once the message has */
    instant sent_at;
};

/* A WebSocket. */
struct peer {
    struct peer *next, **link; /* in the server's list */
    struct server *server;
    struct web_socket *socket;
    uint64_t number;
    bool is_dropped;
    struct receipt *first, **last;
};

/* A question of HTTP whose answer is not complete. */
struct asker {
    struct asker *next, **link; /* in the server's list */
    struct web_exchange *exchange;
    uint64_t ticket;
    bool has_begun; /* REPLY_PARTS: the head is sent */
    bool is_ready;  /* the next part, or the answer, may be given */
    struct http_reply reply;
};

struct server {
    struct server_config config;
    struct web_server *web;
    char *host, *token;
    struct peer *peers;
    struct asker *askers;
    uint64_t last_number;
    unsigned connections;
    uint64_t refused; /* above SERVER_CONNECTIONS_MAX */
    uv_timer_t receiver;
    bool has_timer; /* its handle is open */
    int end_code;   /* of server_end(); 0: not called */
    char end_reason[REASON_MAX + 1];
};

bool server_has_token(const struct server *server, const struct web_request *request);

/* A request for a WebSocket, and one for an answer. */
void server_ws_begin(struct server *server, struct web_exchange *exchange);
void server_http_begin(struct server *server, struct web_exchange *exchange);
/* Of an answer in parts: the client has taken all; it has gone. */
void server_http_drained(struct server *server, struct web_exchange *exchange);
void server_http_gone(struct server *server, struct web_exchange *exchange);

/* A message was written whole: hooks.delivered is called once the other side's system has it.
 * False: out of memory, or the connection is gone. */
bool server_receipts_await(struct server *server, struct peer *peer);
/* Reports the messages that have arrived. */
void server_receipts_look(struct server *server);
/* The same where the connection is to be closed by us: what was written only just now has arrived
 * before that, if the connection works. */
void server_receipts_presume(struct server *server, struct peer *peer);
/* Of a connection that ends: reports, and forgets the rest. */
void server_receipts_end(struct server *server, struct peer *peer);

#endif
