/* The handlers of the routes, one file for each part of the fleet. */
#ifndef FLEET_HTTP_HANDLERS_H
#define FLEET_HTTP_HANDLERS_H

#include "fleet/http/call.h"

enum { LIST_MAX = 1000 /* items of one answer */ };

/* objects.c: the route's detail is the kind. */
void objects_list(struct call *call);
void objects_get(struct call *call);
void objects_put(struct call *call);
void objects_patch(struct call *call);
void objects_delete(struct call *call);

/* apply.c */
void apply_file(struct call *call);

/* workers.c, worker_changes.c; of workers_set the detail is one of enum worker_action. */
enum worker_action { ACTION_CORDON, ACTION_UNCORDON, ACTION_DRAIN, ACTION_UNDRAIN };
void workers_list(struct call *call);
void workers_get(struct call *call);
void workers_put(struct call *call);
void workers_patch(struct call *call);
void workers_delete(struct call *call);
void workers_set(struct call *call);
void workers_move(struct call *call);

/* display_data.c */
void display_data_get(struct call *call);
void display_data_patch(struct call *call);
void display_session_put(struct call *call);
void display_stage_put(struct call *call);

/* fleet_lists.c */
void assignments_list(struct call *call);
void unplaced_list(struct call *call);
void detections_get(struct call *call);
void processes_list(struct call *call);

/* probes.c */
void status_get(struct call *call);
void health_get(struct call *call);
void ready_get(struct call *call);
void leader_get(struct call *call);
void leader_pass(struct call *call);

/* metrics.c */
void metrics_get(struct call *call);

/* static_files.c */
void page_get(struct call *call);
void openapi_get(struct call *call);

#endif
