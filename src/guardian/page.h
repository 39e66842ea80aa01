/* The memory that a process shares with its guardian: until when it leads, who shall follow it, a
 * lock by which its death is noticed early (guardian/dying.h), last words (guardian/words.h). The
 * process's side of it.
 */
#ifndef GUARDIAN_PAGE_H
#define GUARDIAN_PAGE_H

#include "guardian/protocol.h"

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct guardian_words;

struct page {
    int fd; /* memfd; -1: there is no page */
    size_t bytes;
    struct guardian_shared *shared;
    struct words *words; /* behind `shared`; NULL: no slots were asked for */
    uint32_t slots;
    uint32_t next_slot; /* where a free one is looked for first */
};

/* The calling thread holds the lock from now on: when it dies, the guardian has a look. BATON_EIO;
 * then page_free() is still called. */
int page_make(struct page *page, uint32_t slots, struct baton_error *reterr);

/* Called on another thread it leaves the memory, which that thread's list of locks goes through. */
void page_free(struct page *page);

/* As guardian_set_words and its neighbours. */
int page_set_words(struct page *page, const struct guardian_words *words,
                   struct baton_error *reterr);
int page_open_slot(struct page *page, const char *name);
void page_close_slot(struct page *page, int slot);
void page_set_epoch(struct page *page, int slot, uint64_t epoch);

#endif
