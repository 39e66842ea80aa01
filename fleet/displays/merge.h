/* What a display keeps (DisplayPersistentData of the worker protocol), and patches of it. Pure.
 *
 *   data     {"currentCar":{"carBrand":"Honda"}, "qrCode":"x", …}
 *   patch    {"currentCar":{"carModel":"Civic"}, "qrCode":null}
 *   merged   {"currentCar":{"carBrand":"Honda","carModel":"Civic"}, "qrCode":null, …}
 *
 * Objects are merged, everything else is replaced, null sets null. Only the fields of the protocol
 * are allowed, in the protocol's types; fuelPump and weatherData are objects of any content. Merged
 * data always has all of the seven fields: one that was never set is null.
 */
#ifndef FLEET_DISPLAYS_MERGE_H
#define FLEET_DISPLAYS_MERGE_H

#include "protocol/protocol.h"

enum {
    DISPLAY_DEPTH_MAX = 8,        /* of nested objects and arrays, the data itself included */
    DISPLAY_BYTES_MAX = 64 * 1024 /* of the data as compact JSON */
};

/* *ret: new data; `data` (NULL: none yet) and `patch` stay as they are. The error has the path of
 * what is wrong and what is allowed there: BATON_EINVAL, of a wrong or unknown field;
 * BATON_ETOOBIG, too deep, or too large when merged; BATON_ENOMEM. */
int display_merge(json_t **ret, const json_t *data, const json_t *patch,
                  struct baton_error *reterr);

/* The checks that need the patch alone: what is left is how large the merged data is, and whether
 * it has adsPlayback.playlistSlotOrder. */
int display_patch_check(const json_t *patch, struct baton_error *reterr);

/* The session and the stage of the data; NULL, or data of another type: none. */
struct session_id display_session_of(const json_t *data);
enum stage display_stage_of(const json_t *data);

/* Of a detection's attributes those of the current car that are not so in the data, as a new patch
 * {"currentCar":{…}}. Attributes of another type, and nulls, are left out: the worker could not
 * read them. NULL: there are none, or out of memory. */
json_t *display_car_patch(const json_t *data, const json_t *attributes);

#endif
