#include "lib/process.h"

#include "base/clock.h"
#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT_MIN = 10000, PORT_END = 32768 };

static instant patience(void)
{
    return instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
}

static void pause_a_moment(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void pause_or_fail(instant limit, const char *what)
{
    if (!instant_before(clock_now(), limit)) {
        fail_msg("waited in vain: %s", what);
    }
    pause_a_moment();
}

pid_t process_fork(int (*body)(void *userdata), void *userdata)
{
    pid_t parent = getpid();
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        _exit(body(userdata));
    }
    return child;
}

int process_wait(pid_t child)
{
    int status = 0;
    instant limit = patience();
    pid_t got;

    while ((got = waitpid(child, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        pause_or_fail(limit, "a child should end");
    }
    assert_int_equal(got, child);
    return status;
}

void process_end(pid_t child)
{
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* The letter of /proc/PID/stat; 0: no such process. */
static char state_of(pid_t pid)
{
    char path[64], text[512];
    char *after_name;
    size_t bytes;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    bytes = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    after_name = strrchr(text, ')');
    return after_name != NULL && strlen(after_name) > 2 ? after_name[2] : '\0';
}

bool process_lives(pid_t pid)
{
    char state = state_of(pid);
    return state != 0 && state != 'Z' && state != 'X';
}

long process_status(pid_t pid, const char *key, int base)
{
    size_t bytes = strlen(key);
    char path[64], line[256];
    long value = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, bytes) == 0 && line[bytes] == ':') {
            value = strtol(line + bytes + 1, NULL, base);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return value;
}

pid_t process_child(pid_t pid)
{
    glob_t found = {0};
    char path[64];
    pid_t child = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/*/children", (int)pid);
    (void)glob(path, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc && child == 0; i++) {
        FILE *file = fopen(found.gl_pathv[i], "re");
        if (file != NULL) { /* else the thread has ended meanwhile */
            child = fscanf(file, "%d", &child) == 1 ? child : 0;
            (void)fclose(file);
        }
    }
    globfree(&found);
    return child;
}

void process_wait_gone(pid_t pid)
{
    instant limit = patience();
    while (process_lives(pid)) {
        pause_or_fail(limit, "a process should be gone");
    }
}

void process_wait_stopped(pid_t pid)
{
    instant limit = patience();
    while (state_of(pid) != 'T') {
        pause_or_fail(limit, "a process should be stopped");
    }
}

struct starter {
    pid_t (*start)(void *userdata);
    void *userdata;
    int pipe[2];
};

static int start_and_wait(void *userdata)
{
    const struct starter *starter = userdata;
    pid_t started = starter->start(starter->userdata);

    (void)!write(starter->pipe[1], &started, sizeof(started));
    while (pause() < 0) {
    }
    return EXIT_SUCCESS;
}

/* Never left behind: stopped as it is, nothing but this ends it. */
static bool dies_by_itself(pid_t pid)
{
    instant limit = patience();
    bool is_gone;

    while (!(is_gone = !process_lives(pid)) && instant_before(clock_now(), limit)) {
        pause_a_moment();
    }
    process_end(pid);
    return is_gone;
}

void process_must_die_with_starter(pid_t (*start)(void *userdata), void *userdata)
{
    struct starter starter = {.start = start, .userdata = userdata};
    pid_t parent, started = 0;

    assert_int_equal(pipe(starter.pipe), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* it is ours to bury */
    parent = process_fork(start_and_wait, &starter);
    process_read(starter.pipe[0], &started, sizeof(started));
    assert_int_equal(kill(started, SIGSTOP), 0);
    process_wait_stopped(started);
    process_end(parent);
    assert_true(dies_by_itself(started));
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    (void)close(starter.pipe[0]);
    (void)close(starter.pipe[1]);
}

void process_wait_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int count;
    do {
        count = poll(&polled, 1, PATIENCE_MS);
    } while (count < 0 && errno == EINTR);
    assert_int_equal(count, 1);
}

size_t process_read_all(int fd, void *ret, size_t bytes)
{
    size_t total = 0;
    while (total < bytes) {
        process_wait_readable(fd);
        ssize_t got = read(fd, (char *)ret + total, bytes - total);
        if (got <= 0) {
            break;
        }
        total += (size_t)got;
    }
    return total;
}

void process_read(int fd, void *ret, size_t bytes)
{
    assert_int_equal(process_read_all(fd, ret, bytes), bytes);
}

static unsigned reservations;

/* Another test could take a port between its choice and its use, or while its server is down: it is
 * ours as long as this process lives, by a name that all tests agree upon. */
static bool reserve(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bytes = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "baton-test-port-%d", port);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);

    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&name, length) != 0) {
        (void)close(fd);
        return false;
    }
    reservations++;
    return true;
}

int process_listen(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    instant limit = patience();
    uint16_t random;

    assert_true(fd >= 0);
    do { /* below those that the kernel gives to whoever connects: it stays free when it is closed
          */
        assert_true(instant_before(clock_now(), limit));
        assert_int_equal(getrandom(&random, sizeof(random), 0), sizeof(random));
        *ret_port = PORT_MIN + random % (PORT_END - PORT_MIN);
        address.sin_port = htons((uint16_t)*ret_port);
    } while (!reserve(*ret_port) || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

void process_free_ports(int *ret, size_t count)
{
    int listener;

    if (count > 0) { /* held until the others are found */
        listener = process_listen(ret);
        process_free_ports(ret + 1, count - 1);
        close(listener);
    }
}

int process_free_port(void)
{
    int port;

    process_free_ports(&port, 1);
    return port;
}

int process_accept(int listener)
{
    int fd;
    process_wait_readable(listener);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

unsigned process_count_entries(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(entries);
    while ((entry = readdir(entries)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    (void)closedir(entries);
    return count;
}

unsigned process_count_descriptors(void)
{
    /* Without the one that counts, and what reserves ports. */
    return process_count_entries("/proc/self/fd") - 1 - reservations;
}

size_t process_read_file(const char *path, void *ret, size_t bytes)
{
    FILE *file = fopen(path, "rbe");
    size_t got;

    assert_non_null(file);
    got = fread(ret, 1, bytes, file);
    (void)fclose(file);
    assert_true(got < bytes);
    ((char *)ret)[got] = '\0';
    return got;
}

void process_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wbe");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void process_make_folder(char *ret, size_t ret_bytes)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(ret, ret_bytes, "%s/baton-test-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(ret));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

void process_remove_folder(const char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
}
