/* One soft body: a lattice of nodes and springs around a centre, and its motion during one frame.
 *
 *        o--o--o          node 0 is the centre; then follow rings 1 to 3 from the inside, each with
 *      o  \ | /  o        16 nodes in counter-clockwise order. Springs run along the rings, along
 *     o----\|/----o       the spokes, and crosswise between two rings. A weaker force pulls each
 *      o  / | \  o        node towards its place in the shape at rest, so that no fold remains.
 *        o--o--o
 *
 * A body knows of the others only their bounds at the start of the frame, so all bodies of a scene
 * can be moved at once, in any order and in any process. The same input gives the same bits on
 * every machine: the code adds, subtracts, multiplies, divides and takes roots of doubles, each
 * exactly rounded by IEEE 754, in one order, and the build forbids to fuse two of these operations.
 *
 * Lengths are in m, times in s; x points right, y up; a node weighs 1. The world is a box with
 * three fixed pegs, and open at the top.
 */
#ifndef SOFTBODY_BODY_H
#define SOFTBODY_BODY_H

#include <stddef.h>
#include <stdint.h>

enum {
    BODY_RINGS = 3,
    BODY_SPOKES = 16,
    BODY_NODES = 1 + BODY_RINGS * BODY_SPOKES,
    BODY_OUTLINE = BODY_NODES - BODY_SPOKES, /* the first node of the outer ring */
    SCENE_BODIES_MAX = 64,
    FRAMES_PER_S = 60,
    WORLD_WIDTH = 16, /* the walls are x = 0 and x = 16, the floor is y = 0 */
};

struct vec {
    double x, y;
};

struct body {
    uint32_t id;                    /* its place among all bodies of the scene, from 0 */
    double half_width, half_height; /* at rest */
    struct vec at[BODY_NODES];
    struct vec velocity[BODY_NODES];
};

/* What the other bodies know of a body: the ellipse that fits its outline best, and how it moves.
 * A point d away from the centre is on the ellipse if d' M^-1 d = 1, M = (xx xy; xy yy). */
struct bounds {
    struct vec center, velocity;
    double xx, xy, yy;
};

/* A body at rest, turned by `turn` times 1/16 of a circle. */
void body_place(struct body *body, uint32_t id, struct vec center, double half_width,
                double half_height, uint32_t turn);

void body_bounds(const struct body *body, struct bounds *ret);

/* Moves the body on by one frame. `all` are the bounds of the `count` bodies of the scene, by id,
 * as they were `age_frames` ago; those of the body itself are skipped. */
void body_step(struct body *body, const struct bounds *all, size_t count, uint32_t age_frames);

#endif
