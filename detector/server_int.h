/* What the files of server.h share. */
#ifndef DETECTOR_SERVER_INT_H
#define DETECTOR_SERVER_INT_H

#include "base/clock.h"
#include "detector/frame_heads.h"
#include "detector/request_lines.h"
#include "detector/server.h"

#include <libwebsockets.h>

enum {
    KEY_MAX = 128,       /* of a handshake, with its NUL */
    HEADERS_MAX = 65535, /* all of a request, as libwebsockets keeps it */
    HEADS_MAX = 1024,    /* connections that have yet to say what they want */
    SOCKETS_MAX = SERVER_CONNECTIONS_MAX + HEADS_MAX + 512, /* the others are answered */
    ANSWER_WITHIN_S = 30,
    READ_WITHIN_S = 30,
    CLOSE_WITHIN_S = 5,
    REASON_MAX = 123,
    CLOSE_PROTOCOL_ERROR = 1002,
    CLOSE_NOT_TEXT = 1007,
    CLOSE_POLICY = 1008,
    CLOSE_TOO_LARGE = 1009,
    CLOSE_TRY_AGAIN_LATER = 1013,
    LINGER_MAX = 64, /* connections at a time, see server_linger() */
    LINGER_MS = 2000,
    LINGER_BYTES = 4 << 20
};

#define ONLY_GET_AND_HEAD "only GET and HEAD are answered"

struct message {
    struct message *next;
    size_t bytes;
    bool with_receipt;
    uint64_t end;         /* so many bytes of the connection are taken once this is; 0: not known */
    instant written_at;   /* as far as it has a receipt */
    unsigned char room[]; /* LWS_PRE bytes for lws, then the text */
};

/*   IDLE ──asked──▶ WAITING ──server_answer──▶ HEAD ─▶ BODY ──written──▶ IDLE
 *    └──────────answered at once─────────────▲   └──▶ PARTS ◀──server_answer, written──▶ PART
 *                                                  └──server_finish──▶ END */
enum http_phase {
    HTTP_IDLE,
    HTTP_WAITING, /* for server_answer() */
    HTTP_HEAD,    /* to be written, as far as the answer is known */
    HTTP_BODY,    /* to be written */
    HTTP_PARTS,   /* nothing to write */
    HTTP_PART,    /* to be written */
    HTTP_END,     /* of the parts */
};

/* What came over a connection, as it was sent: first requests, then perhaps frames. */
struct incoming {
    struct request_lines lines;
    struct frame_heads frames;
};

/* One connection; lws keeps the pointer to it. */
struct peer {
    struct peer *next, **link; /* in `peers` while a WebSocket, in `askers` while it has a ticket */
    struct lws *wsi;
    uint64_t number; /* 0: HTTP */
    struct buffer received;
    unsigned fragments;     /* of the message that is not whole */
    uint64_t control_bytes; /* of frames, when it was looked at last */
    unsigned quiet_s;       /* since its latest pong, or its beginning */
    bool is_ping_due;       /* to be written */
    struct message *first, **last;
    size_t waiting;            /* bytes of the messages */
    bool is_choked;            /* its socket has no room */
    struct message *unwritten; /* with a receipt: the last one, of which lws still keeps a part */
    struct message *sent, **last_sent; /* with a receipt: written, and not known to have arrived */
    int close_code;                    /* 0: not to be closed */
    bool is_close_sent;
    char close_reason[REASON_MAX + 1];
    uint64_t ticket; /* 0: none */
    enum http_phase phase;
    bool is_head; /* the method */
    bool is_last; /* no further request is wanted */
    struct http_reply reply;
};

struct server {
    struct server_config config;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct lws_protocols protocols[2];
    char *host, *token, *tls_cert, *tls_key;
    struct peer *peers, *askers;
    uint64_t last_number;
    unsigned connections;
    uint64_t refused; /* above SERVER_CONNECTIONS_MAX */
    size_t answers;   /* bytes of replies that wait */
    struct head *oldest_head, *newest_head;
    unsigned heads;
    uv_timer_t sweeper, looker, receiver;
    bool has_timers; /* their handles are open */
    int end_code;    /* of server_end(); 0: not called */
    char end_reason[REASON_MAX + 1];
    struct straggler *stragglers;
    unsigned lingering;
};

/* A connection is new, 0 or -1; has yet to say what it wants, for the first time or again; has said
 * it; is gone. */
int server_head_new(struct server *server, struct lws *wsi);
void server_head_begins(struct lws *wsi);
void server_head_ends(struct lws *wsi);
void server_head_free(struct lws *wsi);
/* Before it ends: NULL, or what libwebsockets made something else of (request_lines.h). */
const char *server_head_fault(struct lws *wsi, bool is_upgrade);
/* Of a WebSocket; NULL: it is gone. */
const struct frame_heads *server_head_frames(struct lws *wsi);
/* Hangs up on the oldest above HEADS_MAX, but for those who have said something that is not read
 * yet; call it from outside lws's callbacks. */
void server_heads_sweep(struct server *server);

/* From now on what this thread reads from the descriptor is read along, until the end. False: out
 * of memory, or no descriptor. */
bool server_tap_begin(int fd, struct incoming *incoming);
void server_tap_end(int fd, const struct incoming *incoming);

/* Soon, and from outside lws's callbacks, connections are closed that have to be. */
void server_sweep_soon(struct server *server);

/* Into one of the server's lists, and out of it. */
void server_link(struct peer **list, struct peer *peer);
void server_unlink(struct peer *peer);

bool server_has_token(const struct server *server, struct lws *wsi);

/* What is asked of an HTTP request besides; an upgrade is refused by its Origin. */
bool server_knows_host(const struct server *server, struct lws *wsi);

/* What libwebsockets tells of a WebSocket connection; its result is theirs: -1 hangs up. */
void server_ws_established(struct server *server, struct lws *wsi, struct peer *peer);
int server_ws_received(struct server *server, struct lws *wsi, struct peer *peer, const void *in,
                       size_t bytes);
int server_ws_writable(struct server *server, struct lws *wsi, struct peer *peer);
void server_ws_closed(struct server *server, struct peer *peer);

/* A piece of a data frame came: 0, or a code to close it with and the reason; from now on those who
 * send too much else are closed. */
int server_flood_receive(struct peer *peer, const char **reason);
void server_flood_watch(struct server *server);

/* Each second, of each WebSocket peer: a ping becomes due, or it is closed. Writes what is due; its
 * result is libwebsockets': -1 hangs up. */
void server_ping_look(struct server *server, struct peer *peer);
int server_ping_write(struct peer *peer);

/* A message was written whole: the receipt comes when the other side has it. Takes the message. */
void server_receipts_await(struct server *server, struct peer *peer, struct message *message);
/* Gives the receipts that are due. */
void server_receipts_look(struct server *server);
/* The same where the connection is to be closed by us: what was written only just now has arrived
 * before that, if it works. */
void server_receipts_presume(struct server *server, struct peer *peer);
/* The same of a connection that ends; there are no others then. */
void server_receipts_end(struct server *server, struct peer *peer);

/* What libwebsockets tells of an HTTP connection; its result is theirs: -1 hangs up. `fault`: why
 * it is to be refused, or NULL. */
int server_on_request(struct server *server, struct lws *wsi, struct peer *peer, const char *fault);
int server_on_http_writable(struct server *server, struct lws *wsi, struct peer *peer);
void server_on_http_closed(struct server *server, struct peer *peer);

/* Answers with {"error": reason}, at once and for the last time on this connection; `reason` is
 * short and needs no escapes. 0, or -1: it cannot be said. */
int server_refuse(struct lws *wsi, unsigned status, const char *reason);

/* The server whose connection this is; NULL: none of ours. */
struct server *server_of(struct lws *wsi);

/* Whoever is closed on while it still sends gets a reset, and its answer is lost. So once the loop
 * has turned, by when libwebsockets has closed, nothing more is sent, and what still comes is read
 * and dropped until the other side hangs up too, within bounds. `fd` is a copy of the connection's
 * socket, and is closed in the end; -1: there is none. */
void server_linger(struct server *server, int fd);
void server_linger_end(struct server *server); /* all of them */

#endif
