/* The routes of the API: one table, by which requests are dispatched and limited, and with which a
 * test compares openapi.json.
 *
 *   GET /api/subscriptions/{id}     a segment in braces is an id, at most one in a route
 *
 * A segment is compared and taken after it is decoded, so a slash in an id is sent as %2F. A HEAD
 * is a GET whose body is not sent.
 */
#ifndef FLEET_HTTP_ROUTES_H
#define FLEET_HTTP_ROUTES_H

#include <stddef.h>

struct call;

enum right {
    RIGHT_NONE, /* anybody: probes, the page, the description of the API */
    RIGHT_READ,
    RIGHT_CHANGE,
};

enum { ROUTE_ID_MAX = 512, ROUTE_METHODS_MAX = 64 };

struct route {
    const char *method, *pattern;
    enum right right;
    int detail;      /* the handler's own: a kind of object, an action */
    size_t body_max; /* bytes; 0: a body is refused */
    void (*handle)(struct call *call);
};

/* Ends with a route without a method. */
extern const struct route fleet_routes[];

/* The route of a request, and the id in its path, or "". NULL: *ret_methods has the methods that
 * the path has ("GET, HEAD, PUT"), or is "" if there is no such path. */
const struct route *route_find(const struct route *routes, const char *method, const char *target,
                               char ret_id[static ROUTE_ID_MAX],
                               char ret_methods[static ROUTE_METHODS_MAX]);

/* A parameter of the query, decoded. Returns its bytes; 0: it is not there; -1: it is malformed or
 * too long. */
int route_parameter(const char *target, const char *name, char *ret, size_t bytes);

#endif
