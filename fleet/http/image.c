#include "fleet/http/image.h"

#include "fleet/http/image_url.h"
#include "web/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum { HEADERS_ROOM = 512, ANSWER_HEAD_MAX = 8192 };

/* A call that waits. */
struct waiting {
    struct call *call;
    struct waiting *next;
};

struct image {
    struct images *images;
    char *url;                 /* of the worker's picture: the key */
    struct web_client *client; /* NULL: none is under way */
    struct waiting *waiting;
    unsigned waiting_count;
    unsigned status; /* of the latest answer; 0: none */
    char *type;
    void *data;
    size_t bytes;
    instant at;
    UT_hash_handle hh;
};

struct images {
    struct fleet_http *http;
    struct image *by_url;
    size_t kept; /* bytes */
};

/* ---- Entries --------------------------------------------------------------------------------- */

static void forget_picture(struct image *image)
{
    image->images->kept -= image->bytes;
    free(image->data);
    free(image->type);
    image->data = image->type = NULL;
    image->bytes = 0;
    image->status = 0;
}

static void drop(struct image *image)
{
    forget_picture(image);
    HASH_DEL(image->images->by_url, image);
    free(image->url);
    free(image);
}

static bool is_fresh(const struct image *image, instant now)
{
    return image->status != 0 &&
           instant_before(now, instant_add(image->at, SPAN_MS(IMAGE_FRESH_MS)));
}

/* Those that nobody waits for and that are too old. */
static void drop_stale(struct images *images, instant now)
{
    struct image *image = NULL, *next = NULL;

    HASH_ITER (hh, images->by_url, image, next) {
        if (image->client == NULL && !is_fresh(image, now)) {
            drop(image);
        }
    }
}

/* NULL: out of memory, or too many are under way. */
static struct image *find_or_add(struct images *images, const char *url, instant now)
{
    struct image *image;

    HASH_FIND_STR(images->by_url, url, image);
    if (image != NULL) {
        return image;
    }
    if (HASH_COUNT(images->by_url) >= IMAGE_ENTRIES_MAX || images->kept >= IMAGE_KEPT_MAX) {
        drop_stale(images, now);
    }
    image = HASH_COUNT(images->by_url) < IMAGE_ENTRIES_MAX && images->kept < IMAGE_KEPT_MAX
                ? calloc(1, sizeof(*image))
                : NULL;
    if (image != NULL && (image->url = strdup(url)) == NULL) {
        free(image);
        image = NULL;
    }
    if (image != NULL) {
        image->images = images;
        HASH_ADD_KEYPTR(hh, images->by_url, image->url, strlen(image->url), image);
        if (image->hh.tbl == NULL) {
            free(image->url);
            free(image);
            image = NULL;
        }
    }
    return image;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void answer(struct call *call, const struct image *image)
{
    if (image->status == 200) {
        call_bytes(call, 200, image->type, image->data, image->bytes);
    } else if (image->status == 404) {
        call_refuse(call, 404, NULL, "the worker has no picture of this camera yet");
    } else {
        call_refuse(call, 502, NULL, "the worker answers with status %u", image->status);
    }
}

/* An answer may bring the next request of its connection in here, for this picture, too. It gets
 * the same answer: at once if the picture came, and with the others after an error. */
static void answer_all(struct image *image, const struct baton_error *error)
{
    struct waiting *waiting;

    while ((waiting = image->waiting) != NULL) {
        LL_DELETE(image->waiting, waiting);
        image->waiting_count--;
        if (error != NULL) {
            call_refuse(waiting->call, error->code == BATON_ETIMEDOUT ? 504 : 502, NULL,
                        "the worker cannot be asked: %s", error->message);
        } else {
            answer(waiting->call, image);
        }
        free(waiting);
    }
}

/* A picture is what says so: nothing that a worker sends is ever shown as a page. */
static bool is_picture(const struct web_response *response)
{
    const char *type = web_header(&response->head, "content-type");

    return type != NULL && strncasecmp(type, "image/", 6) == 0 &&
           strncasecmp(type, "image/svg", 9) != 0 && strpbrk(type, "\r\n") == NULL;
}

static void on_response(void *userdata, const struct web_response *response)
{
    struct image *image = userdata;
    struct images *images = image->images;

    forget_picture(image);
    image->at = clock_now();
    image->status = response->status == 200 && !is_picture(response) ? 415 : response->status;
    images->http->counters.images++;
    if (image->status == 200) {
        image->type = strdup(web_header(&response->head, "content-type"));
        image->data = malloc(response->body.bytes + 1);
        image->bytes = image->data != NULL ? response->body.bytes : 0;
        images->kept += image->bytes;
    }
    if (image->status == 200 && (image->type == NULL || image->data == NULL)) {
        image->status = 503;
    } else if (image->status == 200 && image->bytes > 0) {
        memcpy(image->data, response->body.data, image->bytes);
    }
    answer_all(image, NULL);
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct image *image = userdata;

    answer_all(image, error->code != BATON_OK ? error : NULL);
    image->client = NULL; /* only now: without a client the entry may be dropped, or asks again */
    if (image->status == 0) {
        drop(image);
    }
}

/* ---- Requests -------------------------------------------------------------------------------- */

static int ask(struct image *image, struct baton_error *reterr)
{
    const struct fleet_http_config *config = &image->images->http->config;
    char headers[HEADERS_ROOM] = "";
    struct web_client_options options = {
        .loop = config->loop,
        .url = image->url,
        .tls = config->worker_tls,
        .headers = headers,
        .head_max = ANSWER_HEAD_MAX,
        .body_max = IMAGE_BYTES_MAX,
        .within_ms = IMAGE_WITHIN_MS,
        .callbacks = {.on_response = on_response, .on_close = on_close},
        .userdata = image};

    if (config->worker_token != NULL) {
        (void)snprintf(headers, sizeof(headers), "authorization: Bearer %s\r\n",
                       config->worker_token);
    }
    return web_client_open(&image->client, &options, reterr);
}

static void wait_for(struct image *image, struct call *call)
{
    struct waiting *waiting =
        image->waiting_count < IMAGE_WAITING_MAX ? malloc(sizeof(*waiting)) : NULL;

    if (waiting == NULL) {
        call_refuse(call, 503, NULL, "too many clients wait for this picture");
        return;
    }
    *waiting = (struct waiting){.call = call};
    LL_PREPEND(image->waiting, waiting);
    image->waiting_count++;
}

static void show(struct call *call, const char *url)
{
    struct images *images = call->http->images;
    instant now = clock_now();
    struct image *image = find_or_add(images, url, now);
    struct baton_error error;

    if (image == NULL) {
        call_refuse(call, 503, NULL, "too many pictures are asked for");
    } else if (is_fresh(image, now)) {
        images->http->counters.images_cached++;
        answer(call, image);
    } else if (image->client == NULL && ask(image, &error) != BATON_OK) {
        drop(image);
        call_refuse(call, 502, NULL, "the worker cannot be asked: %s", error.message);
    } else {
        wait_for(image, call);
    }
}

void image_get(struct call *call)
{
    const struct fleet_state *state = call->http->parts.state;
    const char *id = fleet_state_worker_of(state, call->id);
    const struct fleet_worker *worker = id != NULL ? fleet_state_worker(state, id) : NULL;
    char url[IMAGE_URL_MAX];
    struct baton_error error;

    if (fleet_state_object(state, FLEET_SUBSCRIPTION, call->id, NULL) == NULL) {
        call_refuse(call, 404, NULL, "there is no subscription \"%s\"", call->id);
    } else if (worker == NULL) {
        call_refuse(call, 404, NULL, "the subscription \"%s\" is at no worker now", call->id);
    } else if (image_url(url, worker->url, call->id, web_query(call_request(call)->target),
                         &error) != BATON_OK) {
        call_fail(call, &error);
    } else {
        show(call, url);
    }
}

/* ---- Their life ------------------------------------------------------------------------------ */

struct images *images_new(struct fleet_http *http)
{
    struct images *images = calloc(1, sizeof(*images));

    if (images != NULL) {
        images->http = http;
    }
    return images;
}

void images_close(struct images *images)
{
    struct image *image = NULL, *next = NULL;

    HASH_ITER (hh, images->by_url, image, next) {
        if (image->client != NULL) {
            web_client_close(image->client);
        }
    }
}

bool images_are_closed(const struct images *images)
{
    for (const struct image *image = images->by_url; image != NULL; image = image->hh.next) {
        if (image->client != NULL) {
            return false;
        }
    }
    return true;
}

void images_free(struct images *images)
{
    struct image *image = NULL, *next = NULL;

    if (images == NULL) {
        return;
    }
    HASH_ITER (hh, images->by_url, image, next) {
        drop(image);
    }
    free(images);
}
