/* Who is at the other end of a connection, by the kernel's word. */
#include "net/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define PIDFS 0x50494446 /* its numbers of pidfds are those of the processes: Linux 6.9 */

int local_peer(const struct local *local, struct local_peer *ret, struct baton_error *reterr)
{
    struct ucred credentials;
    socklen_t bytes = sizeof(credentials), fd_bytes = sizeof(ret->pidfd);
    int fd = local_fd(local);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
        return error_set(reterr, BATON_EIO, "credentials of a client: %s", strerror(errno));
    }
    *ret = (struct local_peer){credentials.pid, credentials.uid, credentials.gid, -1, true};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &ret->pidfd, &fd_bytes) != 0) {
        ret->is_exact = false;
        ret->pidfd = credentials.pid > 0 ? pidfd_open(credentials.pid, 0) : -1;
    }
    return BATON_OK;
}

bool local_peer_is(const struct local_peer *peer, const struct local_peer *other)
{
    struct stat about, of_other;
    struct statfs system;

    if (peer->pid > 0 || other->pid > 0) {
        return peer->pid == other->pid;
    }
    return peer->pidfd >= 0 && other->pidfd >= 0 && fstatfs(peer->pidfd, &system) == 0 &&
           system.f_type == PIDFS && fstat(peer->pidfd, &about) == 0 &&
           fstat(other->pidfd, &of_other) == 0 && about.st_dev == of_other.st_dev &&
           about.st_ino == of_other.st_ino;
}

bool local_peer_has_group(const struct local *local, const struct local_peer *peer, gid_t group)
{
    socklen_t bytes = 0;
    gid_t none, *groups = NULL;
    bool has = false;
    int fd;

    if (peer->gid == group) {
        return true;
    }
    fd = local_fd(local);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &bytes) != 0 && errno == ERANGE) {
        groups = malloc(bytes);
    }
    if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0) {
        for (size_t i = 0; !has && i < bytes / sizeof(*groups); i++) {
            has = groups[i] == group;
        }
    }
    free(groups);
    return has;
}
