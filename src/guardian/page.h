/* The memory that a process shares with its guardian, on the process's side: the end of its lease,
 * its heir, a lock that shows its death early (guardian/dying.h), and the commands for servers
 * (guardian/commands.h).
 */
#ifndef GUARDIAN_PAGE_H
#define GUARDIAN_PAGE_H

#include "guardian/protocol.h"

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct guardian_commands;

struct page {
    int fd; /* memfd; -1: there is no page */
    size_t bytes;
    struct guardian_shared *shared;
    struct commands *commands; /* behind `shared`; NULL: no slots were asked for */
    uint32_t slots;
    uint32_t next_slot; /* the search for a free slot begins here */
};

/* The calling thread holds the lock from now on; its death wakes the guardian. BATON_EIO;
 * page_free() is called then, too. */
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
