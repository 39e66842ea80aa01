/* The table of the routes; openapi.json describes each of them. */
#include "fleet/http/events.h"
#include "fleet/http/handlers.h"
#include "fleet/http/image.h"
#include "fleet/http/inside.h"

#define OBJECTS(plural, kind)                                                                      \
    {"GET", "/api/" plural, RIGHT_READ, (kind), 0, objects_list},                                  \
        {"GET", "/api/" plural "/{id}", RIGHT_READ, (kind), 0, objects_get},                       \
        {"PUT", "/api/" plural "/{id}", RIGHT_CHANGE, (kind), HTTP_BODY_MAX, objects_put},         \
        {"PATCH", "/api/" plural "/{id}", RIGHT_CHANGE, (kind), HTTP_BODY_MAX, objects_patch},     \
    {                                                                                              \
        "DELETE", "/api/" plural "/{id}", RIGHT_CHANGE, (kind), 0, objects_delete                  \
    }

#define ACTION(name, action)                                                                       \
    {                                                                                              \
        "POST", "/api/workers/{id}/" name, RIGHT_CHANGE, (action), HTTP_BODY_MAX, workers_set      \
    }

const struct route fleet_routes[] = {
    {"GET", "/healthz", RIGHT_NONE, 0, 0, health_get},
    {"GET", "/readyz", RIGHT_NONE, 0, 0, ready_get},
    {"GET", "/openapi.json", RIGHT_NONE, 0, 0, openapi_get},
    {"GET", "/", RIGHT_NONE, 0, 0, page_get},
    {"GET", "/page/{id}", RIGHT_NONE, 0, 0, page_get},
    {"GET", "/status", RIGHT_READ, 0, 0, status_get},
    {"GET", "/leader", RIGHT_READ, 0, 0, leader_get},
    {"GET", "/metrics", RIGHT_READ, 0, 0, metrics_get},
    {"GET", "/events", RIGHT_READ, 0, 0, events_follow},
    OBJECTS("models", FLEET_MODEL),
    OBJECTS("cameras", FLEET_CAMERA),
    {"GET", "/api/cameras/{id}/image", RIGHT_READ, 0, 0, image_get},
    OBJECTS("displays", FLEET_DISPLAY),
    {"GET", "/api/displays/{id}/data", RIGHT_READ, 0, 0, display_data_get},
    {"PATCH", "/api/displays/{id}/data", RIGHT_CHANGE, 0, HTTP_BODY_MAX, display_data_patch},
    {"PUT", "/api/displays/{id}/session", RIGHT_CHANGE, 0, HTTP_BODY_MAX, display_session_put},
    {"PUT", "/api/displays/{id}/stage", RIGHT_CHANGE, 0, HTTP_BODY_MAX, display_stage_put},
    OBJECTS("subscriptions", FLEET_SUBSCRIPTION),
    {"GET", "/api/workers", RIGHT_READ, 0, 0, workers_list},
    {"GET", "/api/workers/{id}", RIGHT_READ, 0, 0, workers_get},
    {"PUT", "/api/workers/{id}", RIGHT_CHANGE, 0, HTTP_BODY_MAX, workers_put},
    {"PATCH", "/api/workers/{id}", RIGHT_CHANGE, 0, HTTP_BODY_MAX, workers_patch},
    {"DELETE", "/api/workers/{id}", RIGHT_CHANGE, 0, 0, workers_delete},
    ACTION("cordon", ACTION_CORDON),
    ACTION("uncordon", ACTION_UNCORDON),
    ACTION("drain", ACTION_DRAIN),
    ACTION("undrain", ACTION_UNDRAIN),
    {"POST", "/api/workers/{id}/move", RIGHT_CHANGE, 0, HTTP_BODY_MAX, workers_move},
    {"GET", "/api/assignments", RIGHT_READ, 0, 0, assignments_list},
    {"GET", "/api/unplaced", RIGHT_READ, 0, 0, unplaced_list},
    {"GET", "/api/detections", RIGHT_READ, 0, 0, detections_get},
    {"GET", "/api/processes", RIGHT_READ, 0, 0, processes_list},
    {"POST", "/api/leader/pass", RIGHT_CHANGE, 0, HTTP_BODY_MAX, leader_pass},
    {"POST", "/api/apply", RIGHT_CHANGE, 0, HTTP_APPLY_MAX, apply_file},
    {.method = NULL},
};
