/* Pictures of cameras: the newest frame as JPEG. All clients that want the same picture share one.
 */
#include "detector/service_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* What a viewer gets to see now. */
struct view {
    struct still *still;
    const struct image_boxes *boxes; /* NULL: none */
    struct image_shape shape;
};

static void end_viewer(struct viewer *viewer)
{
    web_exchange_set(viewer->exchange, NULL);
    DL_DELETE(viewer->service->viewers, viewer);
    free(viewer);
}

/* False: no frame of the camera is there. */
static bool find_view(const struct viewer *viewer, const struct camera_question *wanted,
                      struct view *ret)
{
    const struct image_store *images = viewer->service->images;
    const struct subscription *subscription =
        worker_find(viewer->service->worker, wanted->identifier);

    ret->still = image_newest(images, wanted->identifier, wanted->source);
    if (ret->still == NULL) {
        return false;
    }
    ret->boxes = wanted->has_boxes ? image_boxes(images, wanted->identifier, wanted->source) : NULL;
    image_shape(&ret->shape, &ret->still->frame, wanted->is_cropped ? &subscription->crop : NULL,
                wanted->width);
    return true;
}

/* A cache may keep a picture but must ask again each time: the camera has newer ones. A 304 has no
 * length: it would be the picture's, which is not known. */
static void answer_image(struct viewer *viewer, const struct image *image)
{
    char headers[160];
    struct web_answer answer = {.status = image != NULL ? 200 : 304, .headers = headers};
    struct web_exchange *exchange = viewer->exchange;

    (void)snprintf(headers, sizeof(headers), "cache-control: no-cache\r\netag: %s\r\n",
                   viewer->tag);
    if (image != NULL) {
        answer.type = "image/jpeg";
        answer.body = image->jpeg;
        answer.bytes = image->bytes;
        viewer->service->images_served++;
    }
    end_viewer(viewer);
    web_answer(exchange, &answer);
}

static void refuse(struct viewer *viewer, unsigned status, const char *reason)
{
    struct web_exchange *exchange = viewer->exchange;

    end_viewer(viewer);
    web_refuse(exchange, status, reason);
}

static void refuse_failed(struct viewer *viewer, const struct baton_error *error)
{
    refuse(viewer, error->code == BATON_EUNAVAILABLE ? 503 : 500, error->message);
}

/* Pictures of another run of this program need other tags, and so do other shapes. */
static void set_tag(struct viewer *viewer, const struct view *view)
{
    const struct image_shape *shape = &view->shape;

    (void)snprintf(viewer->tag, sizeof(viewer->tag), "\"%llx-%llx-%x.%x.%x.%x.%x-%llx\"",
                   (unsigned long long)viewer->service->started_at.ns,
                   (unsigned long long)view->still->number, (unsigned)shape->rect[0],
                   (unsigned)shape->rect[1], (unsigned)shape->rect[2], (unsigned)shape->rect[3],
                   (unsigned)shape->width,
                   view->boxes != NULL ? (unsigned long long)view->boxes->number : 0);
}

static void begin(struct viewer *viewer, const struct camera_question *wanted)
{
    const struct web_head *head = &web_exchange_request(viewer->exchange)->head;
    const char *known = web_header(head, "if-none-match");
    struct baton_error error;
    struct image image;
    struct view view;
    int rc;

    if (!find_view(viewer, wanted, &view)) {
        refuse(viewer, 404,
               wanted->source == IMAGE_SNAPSHOT ? "no snapshot of this camera has arrived yet"
                                                : "no frame of this camera has arrived yet");
        return;
    }
    set_tag(viewer, &view);
    if (known != NULL && question_has_tag(known, viewer->tag)) {
        answer_image(viewer, NULL);
        return;
    }
    rc = encoder_ask(viewer->service->encoder, view.still, &view.shape, view.boxes, &image,
                     &viewer->waits_for, &error);
    if (rc == 0) {
        answer_image(viewer, &image);
    } else if (rc != BATON_EBUSY) {
        refuse_failed(viewer, &error);
    }
}

static const char *missing_source(const struct subscription *subscription, enum image_source source)
{
    if (subscription == NULL) {
        return "no such subscription";
    }
    if (source == IMAGE_STREAM && subscription->rtsp_url[0] == '\0') {
        return "this subscription has no stream: its rtspUrl is empty";
    }
    return source == IMAGE_SNAPSHOT && subscription->snapshot_url == NULL
               ? "this subscription has no snapshots: it names no snapshotUrl"
               : NULL;
}

void service_picture_begin(struct service *service, const struct camera_question *wanted,
                           struct web_exchange *exchange)
{
    const char *missing =
        missing_source(worker_find(service->worker, wanted->identifier), wanted->source);
    struct viewer *viewer = missing == NULL ? calloc(1, sizeof(*viewer)) : NULL;

    if (viewer == NULL) {
        web_refuse(exchange, missing != NULL ? 404 : 503,
                   missing != NULL ? missing : "out of memory");
        return;
    }
    viewer->service = service;
    viewer->exchange = exchange;
    web_exchange_set(exchange, viewer);
    DL_APPEND(service->viewers, viewer);
    begin(viewer, wanted);
}

void service_picture_gone(void *userdata, struct web_exchange *exchange)
{
    struct viewer *viewer = web_exchange_get(exchange);

    (void)userdata;
    if (viewer != NULL) {
        end_viewer(viewer);
    }
}

void service_picture_encoded(void *userdata, const struct encoding *made, const struct image *image,
                             const struct baton_error *error)
{
    struct service *service = userdata;
    struct viewer *viewer = NULL, *next = NULL;

    DL_FOREACH_SAFE (service->viewers, viewer, next) { /* an answer ends no other viewer */
        if (viewer->waits_for == made && image != NULL) {
            answer_image(viewer, image);
        } else if (viewer->waits_for == made) {
            refuse_failed(viewer, error);
        }
    }
}
