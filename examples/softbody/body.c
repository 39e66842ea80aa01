#include "softbody/body.h"

#include <math.h>

enum {
    SUBSTEPS = 16,
    TANGENTS = BODY_RINGS * BODY_SPOKES,
    RADII = BODY_RINGS * BODY_SPOKES,
    CROSSES = 2 * (BODY_RINGS - 1) * BODY_SPOKES,
    SPRINGS = TANGENTS + RADII + CROSSES,
    PEGS = 3,
};

static const double substep = 1.0 / (FRAMES_PER_S * SUBSTEPS);
static const double gravity = 9.81;
static const double stiffness = 2600;   /* of a spring, in 1/s^2 */
static const double damping = 9;        /* of a spring, in 1/s */
static const double memory = 1500;      /* of the shape at rest, in 1/s^2 */
static const double air = 0.5;          /* drag, in 1/s */
static const double contact = 7000;     /* stiffness between bodies, in 1/s^2 */
static const double contact_loss = 22;  /* damping between bodies, in 1/s */
static const double friction = 0.35;    /* between bodies: the most, as a part of the pressure */
static const double wall_bounce = 0.15; /* what a wall gives back of a node's speed */
static const double wall_grip = 0.06;   /* what it takes of the speed along it, each substep */
static const double approach = 2;       /* two bodies come nearer in a round, at most, in m */

static const struct peg {
    struct vec center;
    double radius;
} pegs[PEGS] = {{{3.5, 3.7}, 1.3}, {{8, 4.6}, 1.3}, {{12.5, 3.7}, 1.3}};

struct spring {
    uint32_t a, b;
    double length; /* at rest */
};

/* A body that may be touched: the ellipse of its bounds, its matrix inverted. */
struct obstacle {
    struct vec center, velocity;
    double xx, xy, yy;
};

static struct vec minus(struct vec a, struct vec b)
{
    return (struct vec){a.x - b.x, a.y - b.y};
}

static double dot(struct vec a, struct vec b)
{
    return a.x * b.x + a.y * b.y;
}

static void add(struct vec *sum, double factor, struct vec term)
{
    sum->x += factor * term.x;
    sum->y += factor * term.y;
}

/* ---- The lattice ----------------------------------------------------------------------------- */

static uint32_t node_of(uint32_t ring, uint32_t spoke)
{
    return 1 + ring * BODY_SPOKES + spoke % BODY_SPOKES;
}

/* The lattice at rest around (0, 0). The library's sine is not the same on every machine. */
static void lattice(struct vec ret[static BODY_NODES], double half_width, double half_height)
{
    const struct vec sixteenth = {0.92387953251128674, 0.38268343236508977};
    struct vec direction = {1, 0};

    ret[0] = (struct vec){0, 0};
    for (uint32_t spoke = 0; spoke < BODY_SPOKES; spoke++) {
        for (uint32_t ring = 0; ring < BODY_RINGS; ring++) {
            double part = (double)(ring + 1) / BODY_RINGS;
            ret[node_of(ring, spoke)] =
                (struct vec){half_width * part * direction.x, half_height * part * direction.y};
        }
        direction = (struct vec){direction.x * sixteenth.x - direction.y * sixteenth.y,
                                 direction.x * sixteenth.y + direction.y * sixteenth.x};
    }
}

static double distance(struct vec a, struct vec b)
{
    struct vec way = minus(a, b);

    return sqrt(dot(way, way));
}

static void find_springs(const struct vec rest[static BODY_NODES],
                         struct spring ret[static SPRINGS])
{
    uint32_t count = 0;

    for (uint32_t ring = 0; ring < BODY_RINGS; ring++) {
        for (uint32_t spoke = 0; spoke < BODY_SPOKES; spoke++) {
            uint32_t node = node_of(ring, spoke);
            uint32_t inner = ring == 0 ? 0 : node_of(ring - 1, spoke);
            ret[count++] = (struct spring){.a = node, .b = node_of(ring, spoke + 1)};
            ret[count++] = (struct spring){.a = node, .b = inner};
            if (ring > 0) {
                ret[count++] = (struct spring){.a = node, .b = node_of(ring - 1, spoke + 1)};
                ret[count++] = (struct spring){.a = node_of(ring, spoke + 1), .b = inner};
            }
        }
    }
    for (uint32_t i = 0; i < SPRINGS; i++) {
        ret[i].length = distance(rest[ret[i].a], rest[ret[i].b]);
    }
}

void body_place(struct body *body, uint32_t id, struct vec center, double half_width,
                double half_height, uint32_t turn)
{
    struct vec circle[BODY_NODES];
    struct vec turned;

    *body = (struct body){.id = id, .half_width = half_width, .half_height = half_height};
    lattice(circle, 1, 1);
    turned = circle[node_of(BODY_RINGS - 1, turn)];
    lattice(body->at, half_width, half_height);
    for (uint32_t i = 0; i < BODY_NODES; i++) {
        struct vec at = body->at[i];
        body->at[i] = (struct vec){center.x + at.x * turned.x - at.y * turned.y,
                                   center.y + at.x * turned.y + at.y * turned.x};
    }
}

/* On an ellipse, the mean square of the outline's distance along an axis is half the square of that
 * half axis. */
void body_bounds(const struct body *body, struct bounds *ret)
{
    *ret = (struct bounds){.xx = 0};
    for (uint32_t i = BODY_OUTLINE; i < BODY_NODES; i++) {
        add(&ret->center, 1.0 / BODY_SPOKES, body->at[i]);
        add(&ret->velocity, 1.0 / BODY_SPOKES, body->velocity[i]);
    }
    for (uint32_t i = BODY_OUTLINE; i < BODY_NODES; i++) {
        struct vec d = minus(body->at[i], ret->center);
        ret->xx += d.x * d.x * (2.0 / BODY_SPOKES);
        ret->xy += d.x * d.y * (2.0 / BODY_SPOKES);
        ret->yy += d.y * d.y * (2.0 / BODY_SPOKES);
    }
}

/* ---- Forces ---------------------------------------------------------------------------------- */

static void pull_springs(const struct body *body, const struct spring springs[static SPRINGS],
                         struct vec force[static BODY_NODES])
{
    for (uint32_t i = 0; i < SPRINGS; i++) {
        uint32_t a = springs[i].a;
        uint32_t b = springs[i].b;
        struct vec way = minus(body->at[b], body->at[a]);
        double length = sqrt(dot(way, way)) + 1e-9;
        double speed = dot(minus(body->velocity[b], body->velocity[a]), way) / length;
        double pull = (stiffness * (length - springs[i].length) + damping * speed) / length;
        add(&force[a], pull, way);
        add(&force[b], -pull, way);
    }
}

/* Pulls every node towards its place in the lattice at rest, moved and turned as the body is on the
 * whole. Springs alone would leave a fold where it is. */
static void restore_shape(const struct body *body, const struct vec rest[static BODY_NODES],
                          struct vec force[static BODY_NODES])
{
    struct vec center = {0, 0};
    struct vec turn = {1e-9, 0};
    double length;

    for (uint32_t i = 0; i < BODY_NODES; i++) {
        add(&center, 1.0 / BODY_NODES, body->at[i]);
    }
    for (uint32_t i = 0; i < BODY_NODES; i++) {
        struct vec d = minus(body->at[i], center);
        turn.x += rest[i].x * d.x + rest[i].y * d.y;
        turn.y += rest[i].x * d.y - rest[i].y * d.x;
    }
    length = sqrt(dot(turn, turn));
    turn = (struct vec){turn.x / length, turn.y / length};
    for (uint32_t i = 0; i < BODY_NODES; i++) {
        struct vec d = minus(center, body->at[i]);
        d.x += rest[i].x * turn.x - rest[i].y * turn.y;
        d.y += rest[i].x * turn.y + rest[i].y * turn.x;
        add(&force[i], memory, d);
    }
}

/* The force of an obstacle, whose bounds are `age_s` old, on a node that is inside of it. */
static void push_out(struct vec at, struct vec velocity, const struct obstacle *obstacle,
                     double age_s, struct vec *force)
{
    struct vec d = minus(at, obstacle->center);
    struct vec normal, sliding;
    double inside, steepness, push, along, speed;

    add(&d, -age_s, obstacle->velocity);
    normal = (struct vec){obstacle->xx * d.x + obstacle->xy * d.y,
                          obstacle->xy * d.x + obstacle->yy * d.y};
    inside = dot(d, normal); /* 0 at the centre, 1 on the ellipse */
    if (inside >= 1 || inside < 1e-9) {
        return;
    }
    inside = sqrt(inside);
    steepness = sqrt(dot(normal, normal));
    normal = (struct vec){normal.x / steepness, normal.y / steepness};
    sliding = minus(velocity, obstacle->velocity);
    along = dot(sliding, normal);
    push = contact * (1 - inside) * inside / steepness - contact_loss * along;
    if (push <= 0) {
        return;
    }
    add(&sliding, -along, normal);
    speed = sqrt(dot(sliding, sliding)) + 1e-9;
    add(force, push, normal);
    add(force, -fmin(contact_loss, friction * push / speed), sliding);
}

/* ---- Motion ---------------------------------------------------------------------------------- */

/* Keeps a node out of the half plane behind `surface`. */
static void keep_out(struct vec *at, struct vec *velocity, double depth, struct vec normal)
{
    double speed;

    if (depth <= 0) {
        return;
    }
    add(at, depth, normal);
    speed = dot(*velocity, normal);
    add(velocity, -speed, normal);
    velocity->x *= 1 - wall_grip;
    velocity->y *= 1 - wall_grip;
    add(velocity, speed < 0 ? -wall_bounce * speed : speed, normal);
}

static void keep_in_world(struct vec *at, struct vec *velocity)
{
    for (uint32_t i = 0; i < PEGS; i++) {
        struct vec d = minus(*at, pegs[i].center);
        double length = sqrt(dot(d, d)) + 1e-9;
        keep_out(at, velocity, pegs[i].radius - length, (struct vec){d.x / length, d.y / length});
    }
    keep_out(at, velocity, -at->y, (struct vec){0, 1});
    keep_out(at, velocity, -at->x, (struct vec){1, 0});
    keep_out(at, velocity, at->x - WORLD_WIDTH, (struct vec){-1, 0});
}

/* Those of `all` that may come to touch the body within the frame. */
static uint32_t find_obstacles(const struct body *body, const struct bounds *all, size_t count,
                               struct obstacle ret[static SCENE_BODIES_MAX])
{
    struct bounds own;
    uint32_t found = 0;

    body_bounds(body, &own);
    for (size_t id = 0; id < count; id++) {
        const struct bounds *other = &all[id];
        double reach = sqrt(own.xx + own.yy) + sqrt(other->xx + other->yy) + approach;
        double square = other->xx * other->yy - other->xy * other->xy;
        struct vec d = minus(own.center, other->center);
        if (id != body->id && dot(d, d) < reach * reach) {
            ret[found++] = (struct obstacle){.center = other->center,
                                             .velocity = other->velocity,
                                             .xx = other->yy / square,
                                             .xy = -other->xy / square,
                                             .yy = other->xx / square};
        }
    }
    return found;
}

void body_step(struct body *body, const struct bounds *all, size_t count, uint32_t age_frames)
{
    struct spring springs[SPRINGS];
    struct obstacle obstacles[SCENE_BODIES_MAX];
    struct vec rest[BODY_NODES];
    uint32_t obstacle_count = find_obstacles(body, all, count, obstacles);
    double age_s = (double)age_frames / FRAMES_PER_S;

    lattice(rest, body->half_width, body->half_height);
    find_springs(rest, springs);
    for (uint32_t part = 0; part < SUBSTEPS; part++, age_s += substep) {
        struct vec force[BODY_NODES] = {{0, 0}};
        pull_springs(body, springs, force);
        restore_shape(body, rest, force);
        for (uint32_t i = 0; i < BODY_NODES; i++) {
            for (uint32_t k = 0; k < obstacle_count; k++) {
                push_out(body->at[i], body->velocity[i], &obstacles[k], age_s, &force[i]);
            }
            force[i].y -= gravity;
            add(&force[i], -air, body->velocity[i]);
            add(&body->velocity[i], substep, force[i]);
            add(&body->at[i], substep, body->velocity[i]);
            keep_in_world(&body->at[i], &body->velocity[i]);
        }
    }
}
