/* Two numbers and a flag, each atomic; the order of access makes them consistent.
 *
 *   a new leadership:  end = 0, epoch = e, end = t        a renewal:  end = t
 *
 * A reader reads epoch, end, epoch: if both epochs agree, the end belongs to them, since the end
 * was 0 between two leaderships. It reads `poisoned` last, because a dying thread sets it while
 * another may be publishing.
 *
 * A process that is cloned with CLONE_VM alone shares all of our memory, so only the kernel can
 * tell the two apart, and asking it (getpid) costs more than the whole read. But the kernel writes
 * into memory when a thread dies that holds a robust lock: the publishing thread holds one for
 * life, and a reader checks its futex word.
 *
 * The pages are private and anonymous, the only kind that MADV_WIPEONFORK accepts; a forked child
 * reads zeros. The map of used cells lies elsewhere, or a child would lose it.
 */
#include "provider/lease_cell.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct lease_cell {
    _Alignas(64) _Atomic uint64_t epoch;
    _Atomic int64_t end_ns; /* 0: none */
    _Atomic bool poisoned;
    struct lease_watch *watch;   /* or NULL */
    _Atomic(struct life *) life; /* or NULL */
    uint32_t owner;              /* the thread that holds it */
};

/* A lock that a thread holds for life; in glibc its first word is the futex. */
struct life {
    pthread_mutex_t lock;
    bool is_made;
};

enum { LIVES_MAX = 64 }; /* publishing threads with a lock; further threads have none */
enum { PAGE_BYTES = 4096, CELLS_A_PAGE = PAGE_BYTES / (int)sizeof(struct lease_cell) };

struct page {
    struct lease_cell *cells;
    uint64_t taken; /* a bit for each cell */
    struct page *next;
};

/* The process-wide state of an allocator, like malloc's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct page *pages;
static struct life lives[LIVES_MAX];
static _Thread_local struct life *own_life;

_Static_assert(CELLS_A_PAGE == 64, "a bit of page.taken for each cell");

static struct page *page_new(void)
{
    struct page *page = calloc(1, sizeof(*page));
    void *memory;

    if (!page) {
        return NULL;
    }
    memory = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(page);
        return NULL;
    }
    if (madvise(memory, PAGE_BYTES, MADV_WIPEONFORK) != 0) {
        (void)munmap(memory, PAGE_BYTES);
        free(page);
        return NULL;
    }
    page->cells = memory;
    page->next = pages;
    pages = page;
    return page;
}

static struct lease_cell *take_cell(struct page *page)
{
    int place = __builtin_ctzll(~page->taken);
    page->taken |= (uint64_t)1 << place;
    memset(&page->cells[place], 0, sizeof(page->cells[place]));
    return &page->cells[place];
}

struct lease_cell *lease_cell_new(void)
{
    struct lease_cell *cell = NULL;
    struct page *page;

    (void)pthread_mutex_lock(&lock);
    for (page = pages; page && page->taken == UINT64_MAX; page = page->next) {
    }
    if (!page) {
        page = page_new();
    }
    if (page) {
        cell = take_cell(page);
    }
    (void)pthread_mutex_unlock(&lock);
    return cell;
}

void lease_cell_free(struct lease_cell *cell)
{
    struct page **at = &pages;

    (void)pthread_mutex_lock(&lock);
    while (cell && *at && (cell < (*at)->cells || cell >= (*at)->cells + CELLS_A_PAGE)) {
        at = &(*at)->next;
    }
    if (cell && *at) {
        struct page *page = *at;
        page->taken &= ~((uint64_t)1 << (cell - page->cells));
        if (page->taken == 0) {
            *at = page->next;
            (void)munmap(page->cells, PAGE_BYTES);
            free(page);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- The life of a thread -------------------------------------------------------------------- */

static uint32_t holder_of(const struct life *life)
{
    return __atomic_load_n((const uint32_t *)&life->lock, __ATOMIC_SEQ_CST) & FUTEX_TID_MASK;
}

static bool make_life(struct life *life)
{
    pthread_mutexattr_t attributes;

    if (!life->is_made && pthread_mutexattr_init(&attributes) == 0) {
        life->is_made = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                        pthread_mutex_init(&life->lock, &attributes) == 0;
        (void)pthread_mutexattr_destroy(&attributes);
    }
    return life->is_made;
}

/* Takes a lock that is free or whose thread has ended. */
static bool take_life(struct life *life)
{
    int error = make_life(life) ? pthread_mutex_trylock(&life->lock) : EAGAIN;

    return error == 0 || (error == EOWNERDEAD && pthread_mutex_consistent(&life->lock) == 0);
}

void lease_cell_bind(struct lease_cell *cell)
{
    uint32_t self = (uint32_t)gettid();

    (void)pthread_mutex_lock(&lock);
    if (own_life && holder_of(own_life) != self) {
        own_life = NULL; /* this is a forked child's copy */
    }
    for (int i = 0; !own_life && i < LIVES_MAX; i++) {
        own_life = take_life(&lives[i]) ? &lives[i] : NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    if (own_life && holder_of(own_life) == self) { /* the first word is the futex, as expected */
        cell->owner = self;
        atomic_store(&cell->life, own_life);
    }
}

static bool has_begun_to_die(const struct lease_cell *cell)
{
    const struct life *life = atomic_load(&cell->life);

    return life && holder_of(life) != cell->owner;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void lease_cell_watch(struct lease_cell *cell, struct lease_watch *watch)
{
    cell->watch = watch;
}

/* The watcher sleeps until the end that it knows: only an earlier end must wake it. */
static void show(const struct lease_cell *cell, int64_t end_ns)
{
    struct lease_watch *watch = cell->watch;
    int64_t shown_ns = atomic_load(&cell->poisoned) ? 0 : end_ns;

    if (watch && shown_ns < atomic_exchange(&watch->end_ns, shown_ns)) {
        (void)eventfd_write(watch->wake_fd, 1);
    }
}

void lease_cell_publish(struct lease_cell *cell, uint64_t epoch, instant end)
{
    if (atomic_load(&cell->epoch) != epoch) {
        atomic_store(&cell->end_ns, 0);
        atomic_store(&cell->epoch, epoch);
    }
    atomic_store(&cell->end_ns, end.ns > 0 ? end.ns : 0);
    show(cell, end.ns > 0 ? end.ns : 0);
}

void lease_cell_void(struct lease_cell *cell)
{
    atomic_store(&cell->end_ns, 0);
    show(cell, 0);
}

void lease_cell_poison(struct lease_cell *cell)
{
    atomic_store(&cell->poisoned, true);
    atomic_store(&cell->end_ns, 0);
    show(cell, 0);
}

bool lease_cell_is_poisoned(const struct lease_cell *cell)
{
    return atomic_load(&cell->poisoned);
}

/* Reads a consistent pair of end (0: none) and epoch. */
static int64_t read_pair(const struct lease_cell *cell, uint64_t *ret_epoch)
{
    for (;;) {
        uint64_t before = atomic_load(&cell->epoch);
        int64_t end_ns = atomic_load(&cell->end_ns);
        if (atomic_load(&cell->epoch) == before) {
            *ret_epoch = before;
            return atomic_load(&cell->poisoned) || has_begun_to_die(cell) ? 0 : end_ns;
        }
    }
}

bool lease_cell_is_leader(const struct lease_cell *cell, uint64_t *ret_epoch)
{
    uint64_t epoch;
    int64_t end_ns = read_pair(cell, &epoch);

    if (end_ns == 0 || clock_now().ns >= end_ns) {
        return false;
    }
    if (ret_epoch) {
        *ret_epoch = epoch;
    }
    return true;
}

span lease_cell_remaining(const struct lease_cell *cell)
{
    uint64_t epoch;
    int64_t end_ns = read_pair(cell, &epoch);

    if (end_ns == 0 || end_ns == INSTANT_NEVER.ns) {
        return SPAN_NS(end_ns);
    }
    return instant_since((instant){end_ns}, clock_now());
}

uint64_t lease_cell_epoch(const struct lease_cell *cell)
{
    return atomic_load(&cell->epoch);
}
