#include "guardian/page.h"

#include "guardian/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- The memory ------------------------------------------------------------------------------ */

static bool hold_for_life(pthread_mutex_t *life)
{
    pthread_mutexattr_t attributes;
    bool done = pthread_mutexattr_init(&attributes) == 0;

    if (done) {
        done = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
               pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
               pthread_mutex_init(life, &attributes) == 0 && pthread_mutex_lock(life) == 0;
        (void)pthread_mutexattr_destroy(&attributes);
    }
    return done;
}

int page_make(struct page *page, uint32_t slots, struct baton_error *reterr)
{
    size_t bytes = sizeof(struct guardian_shared) + (slots > 0 ? commands_bytes(slots) : 0);
    void *memory = MAP_FAILED;

    *page = (struct page){.fd = memfd_create("baton-lease", MFD_CLOEXEC), .bytes = bytes};
    if (page->fd >= 0 && ftruncate(page->fd, (off_t)bytes) == 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, 0);
    }
    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_EIO, "guardian: no memory can be shared with it: %s",
                         strerror(errno));
    }
    /* A forked child must not be able to extend its parent's lease. */
    if (madvise(memory, bytes, MADV_DONTFORK) != 0 ||
        !hold_for_life(&((struct guardian_shared *)memory)->life)) {
        (void)munmap(memory, bytes);
        return error_set(reterr, BATON_EIO,
                         "guardian: the shared page cannot be kept from children, or has no lock");
    }
    page->shared = memory;
    atomic_store(&page->shared->loop_thread, (int32_t)gettid());
    page->commands = slots > 0 ? (struct commands *)(page->shared + 1) : NULL;
    page->slots = slots;
    return 0;
}

void page_free(struct page *page)
{
    if (page->commands != NULL) {
        explicit_bzero(page->commands->greeting, sizeof(page->commands->greeting));
    }
    if (page->shared != NULL && pthread_mutex_unlock(&page->shared->life) == 0) {
        (void)munmap(page->shared, page->bytes);
    }
    if (page->fd >= 0) {
        (void)close(page->fd);
    }
    *page = (struct page){.fd = -1};
}

/* ---- Commands for servers
 * ------------------------------------------------------------------------------ */

static int fill_address(struct commands_server *ret, const char *address,
                        struct baton_error *reterr)
{
    char host[RESOLVE_HOST_MAX];
    int port;
    int r;

    if (address[0] == '/') { /* a Unix socket; it was connected, so the path fits */
        struct sockaddr_un place = {.sun_family = AF_UNIX};
        (void)snprintf(place.sun_path, sizeof(place.sun_path), "%s", address);
        memcpy(&ret->address, &place, sizeof(place));
        ret->address_bytes = sizeof(place);
        return 0;
    }
    r = resolve_split(address, host, &port, reterr);
    if (r == 0 && !resolve_numeric(host, port, &ret->address, &ret->address_bytes)) {
        r = error_set(reterr, BATON_EINVAL, "guardian: address %s is no number", address);
    }
    return r;
}

/* Makes the path absolute, since the guardian has another working directory. Symbolic links stay,
 * because the file may be replaced through one. */
static int fill_file(char ret[COMMANDS_FILE_MAX], const char *name, struct baton_error *reterr)
{
    char folder[COMMANDS_FILE_MAX] = "";
    int length;

    if (name[0] && name[0] != '/' && getcwd(folder, sizeof(folder)) == NULL) {
        return error_set(reterr, BATON_ENOENT, "guardian: the folder of %s: %s", name,
                         strerror(errno));
    }
    length = snprintf(ret, COMMANDS_FILE_MAX, "%s%s%s", folder, folder[0] ? "/" : "", name);
    if (length >= COMMANDS_FILE_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "guardian: %s: the path is too long", name);
    }
    if (ret[0] && access(ret, R_OK) != 0) {
        return error_set(reterr, BATON_ENOENT, "guardian: %s: %s", ret, strerror(errno));
    }
    return 0;
}

static int fill_tls(struct commands_tls *ret, const struct guardian_tls *tls,
                    struct baton_error *reterr)
{
    int r;

    ret->is_wanted = tls != NULL;
    if (tls == NULL) {
        return 0;
    }
    ret->is_unverified = tls->is_unverified;
    r = fill_file(ret->ca, tls->ca, reterr);
    r = r == 0 ? fill_file(ret->certificate, tls->certificate, reterr) : r;
    return r == 0 ? fill_file(ret->key, tls->key, reterr) : r;
}

static int fill_servers(struct commands *ret, const struct guardian_commands *commands,
                        struct baton_error *reterr)
{
    int r = 0;

    if (commands->address_count > COMMANDS_SERVERS_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "guardian: %zu servers are more than %d",
                         commands->address_count, COMMANDS_SERVERS_MAX);
    }
    for (size_t i = 0; r == 0 && i < commands->address_count; i++) {
        r = fill_address(&ret->servers[i], commands->addresses[i], reterr);
        (void)snprintf(ret->servers[i].name, COMMANDS_HOST_MAX, "%s",
                       commands->tls != NULL ? commands->names[i] : "");
    }
    ret->server_count = (uint32_t)commands->address_count;
    return r;
}

static int fill_commands(struct commands *ret, const struct guardian_commands *commands,
                         struct baton_error *reterr)
{
    int r = fill_servers(ret, commands, reterr);

    r = r == 0 ? fill_tls(&ret->tls, commands->tls, reterr) : r;
    if (r != 0) {
        return r;
    }
    if (commands->greeting_bytes > sizeof(ret->greeting) ||
        !commands_set_text(&ret->release, commands->release, commands->release_count) ||
        !commands_set_text(&ret->leave, commands->leave, commands->leave_count)) {
        return error_set(reterr, BATON_ETOOBIG, "guardian: its messages are too long");
    }
    memcpy(ret->greeting, commands->greeting, commands->greeting_bytes);
    ret->greeting_bytes = (uint32_t)commands->greeting_bytes;
    return 0;
}

int page_set_commands(struct page *page, const struct guardian_commands *commands,
                      struct baton_error *reterr)
{
    int r = 0;

    if (page->commands != NULL) {
        atomic_store(&page->commands->is_whole, 0);
        r = commands != NULL ? fill_commands(page->commands, commands, reterr) : 0;
        atomic_store(&page->commands->is_whole, commands != NULL && r == 0 ? 1 : 0);
    }
    return r;
}

int page_open_slot(struct page *page, const char *name)
{
    for (uint32_t tried = 0; tried < page->slots && strlen(name) < COMMANDS_NAME_MAX; tried++) {
        uint32_t at = page->next_slot++ % page->slots;
        struct commands_slot *slot = &page->commands->slots[at];

        if (atomic_load(&slot->is_used) == 0) {
            memcpy(slot->name, name, strlen(name) + 1);
            if (at >= atomic_load(&page->commands->slot_count)) {
                atomic_store(&page->commands->slot_count, at + 1);
            }
            atomic_store(&slot->is_used, 1);
            return (int)at;
        }
    }
    return GUARDIAN_NO_SLOT;
}

void page_close_slot(struct page *page, int slot)
{
    if (slot != GUARDIAN_NO_SLOT) {
        atomic_store(&page->commands->slots[slot].is_used, 0);
        atomic_store(&page->commands->slots[slot].epoch, 0);
    }
}

void page_set_epoch(struct page *page, int slot, uint64_t epoch)
{
    if (slot != GUARDIAN_NO_SLOT) {
        atomic_store(&page->commands->slots[slot].epoch, epoch);
    }
}
