/* The process's side of the memory that it shares with its guardian: the lease's end, the heir, a
 * lock whose release reveals the process's death (guardian/dying.h), and the commands for the
 * servers (guardian/commands.h).
 */
#ifndef GUARDIAN_PAGE_H
#define GUARDIAN_PAGE_H

#include "guardian/protocol.h"

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct page {
    int fd; /* memfd; -1: no page */
    size_t bytes;
    struct guardian_shared *shared;
    struct commands *commands; /* after `shared`; NULL: made with 0 slots */
    uint32_t slots;
    uint32_t next_slot; /* the search for a free slot begins here */
};

/* Makes the page; the calling thread holds its lock from now on, and the guardian looks when that
 * thread dies. BATON_EIO: failed, and page_free() must still be called. */
int page_make(struct page *page, uint32_t slots, struct baton_error *reterr);

/* On another thread it does not unmap the memory: the locking thread's list of locks is in it. */
void page_free(struct page *page);

/* As guardian_set_commands() and the functions after it. */
int page_set_commands(struct page *page, const struct guardian_commands *commands,
                      struct baton_error *reterr);
int page_open_slot(struct page *page, const char *name);
void page_close_slot(struct page *page, int slot);
void page_set_epoch(struct page *page, int slot, uint64_t epoch);

#endif
