#include "provider/raft/parcels.h"

#include <stdlib.h>
#include <string.h>

struct waiting_parcel {
    struct waiting_parcel *next;
    struct parcel *parcel;
};

enum { KEPT_BYTES_MAX = 64 * 1024 }; /* of an assembly's memory, between two parcels */

/* ---- One parcel ------------------------------------------------------------------------------ */

static struct parcel *parcel_new(uint64_t number, size_t bytes)
{
    struct parcel *parcel = malloc(sizeof(*parcel) + bytes);

    if (parcel) {
        parcel->users = 1;
        parcel->number = number;
        parcel->bytes = bytes;
    }
    return parcel;
}

struct parcel *parcel_of_message(uint64_t number, const char *channel, const void *data,
                                 size_t bytes)
{
    size_t length = strlen(channel);
    struct parcel *parcel = parcel_new(number, PARCEL_HEAD_BYTES + length + bytes);

    if (parcel) {
        parcel_write(parcel->data, channel, length, data, bytes);
    }
    return parcel;
}

struct parcel *parcel_of_bytes(uint64_t number, const void *data, size_t bytes)
{
    struct parcel *parcel = parcel_new(number, bytes);

    if (parcel) {
        memcpy(parcel->data, data, bytes);
    }
    return parcel;
}

void parcel_unref(struct parcel *parcel)
{
    if (parcel && --parcel->users == 0) {
        free(parcel);
    }
}

/* ---- A line of them -------------------------------------------------------------------------- */

void parcels_init(struct parcels *parcels, size_t bytes_max)
{
    *parcels = (struct parcels){.bytes_max = bytes_max};
}

static size_t cost_of(const struct parcel *parcel)
{
    return parcel->bytes + PARCEL_OVERHEAD;
}

bool parcels_add(struct parcels *parcels, struct parcel *parcel)
{
    struct waiting_parcel *waiting;

    if (cost_of(parcel) > parcels->bytes_max - parcels->bytes ||
        !(waiting = malloc(sizeof(*waiting)))) {
        return false;
    }
    *waiting = (struct waiting_parcel){.parcel = parcel};
    parcel->users++;
    if (parcels->last) {
        parcels->last->next = waiting;
    } else {
        parcels->first = waiting;
    }
    parcels->last = waiting;
    parcels->count++;
    parcels->bytes += cost_of(parcel);
    return true;
}

struct parcel *parcels_take(struct parcels *parcels)
{
    struct waiting_parcel *waiting = parcels->first;
    struct parcel *parcel;

    if (!waiting) {
        return NULL;
    }
    parcel = waiting->parcel;
    parcels->first = waiting->next;
    if (!waiting->next) {
        parcels->last = NULL;
    }
    free(waiting);
    parcels->count--;
    parcels->bytes -= cost_of(parcel);
    parcels->given = 0;
    return parcel;
}

size_t parcels_end(struct parcels *parcels)
{
    size_t count = parcels->count;

    while (parcels->first) {
        parcel_unref(parcels_take(parcels));
    }
    return count;
}

bool parcels_next_part(const struct parcels *parcels, struct part *ret)
{
    const struct parcel *parcel = parcels->first ? parcels->first->parcel : NULL;
    size_t left;

    if (!parcel) {
        return false;
    }
    left = parcel->bytes - parcels->given;
    *ret = (struct part){.parcel = parcel->number,
                         .parcel_bytes = parcel->bytes,
                         .offset = parcels->given,
                         .data = parcel->data + parcels->given,
                         .bytes = left < PART_BYTES_MAX ? left : PART_BYTES_MAX};
    return true;
}

void parcels_part_sent(struct parcels *parcels, const struct part *part)
{
    parcels->given += part->bytes;
    if (parcels->given == part->parcel_bytes) {
        parcel_unref(parcels_take(parcels));
    }
}

/* ---- Assembling ------------------------------------------------------------------------------ */

void assembly_init(struct assembly *assembly)
{
    *assembly = (struct assembly){0};
    buffer_init(&assembly->received, PARCEL_BYTES_MAX);
}

void assembly_fini(struct assembly *assembly)
{
    buffer_fini(&assembly->received);
}

void assembly_clear(struct assembly *assembly)
{
    if (assembly->received.capacity > KEPT_BYTES_MAX) {
        buffer_fini(&assembly->received);
    }
    buffer_clear(&assembly->received);
    assembly->parcel = 0;
}

static bool continues(const struct assembly *assembly, const struct part *part)
{
    return part->parcel == assembly->parcel && part->parcel_bytes == assembly->parcel_bytes &&
           part->offset == assembly->received.bytes;
}

bool assembly_take(struct assembly *assembly, const struct part *part, const void **ret_data)
{
    if (part->offset == 0) {
        assembly_clear(assembly);
        assembly->parcel = part->parcel;
        assembly->parcel_bytes = part->parcel_bytes;
    }
    if (!continues(assembly, part)) {
        assembly_clear(assembly);
        return false;
    }
    if (part->bytes == part->parcel_bytes) { /* most messages have one part: no copy */
        *ret_data = part->data;
        return true;
    }
    buffer_put(&assembly->received, part->data, part->bytes);
    if (assembly->received.failed) {
        assembly_clear(assembly);
        return false;
    }
    *ret_data = assembly->received.data;
    return assembly->received.bytes == part->parcel_bytes;
}
