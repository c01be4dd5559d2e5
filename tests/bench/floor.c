/* The limit: a download with the least possible work, on one thread, without any of what makes a downloader trustworthy.
 *
 *   floor write|splice CONNECTIONS HOST PORT PATH SIZE OUT
 *
 * Fetches equal parts of http://HOST:PORT/PATH (SIZE bytes) over CONNECTIONS connections into OUT.
 * write:  recv into 256 KiB, pwrite; splice: socket -> pipe -> file, never through user space.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Larger buffers leave the second-level cache and get slower. */
#define BUFFER_BYTES (256 * 1024)
/* The most that an unprivileged process may give a pipe. */
#define PIPE_BYTES (1024 * 1024)
#define MAX_CONNECTIONS 64

struct connection {
    int socket;
    int pipe[2];
    int is_body;
    long offset; /* of the next byte to write */
    long left;   /* bytes of this part still to come */
};

static char buffer[BUFFER_BYTES];

static void die(const char *act) {
    fprintf(stderr, "floor: %s: %s\n", act, errno ? strerror(errno) : "failed");
    exit(1);
}

static void open_connection(struct connection *it, const char *host, int port, const char *path) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("address");
    it->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (it->socket < 0 || connect(it->socket, (struct sockaddr *)&address, sizeof address)) die("connect");
    int length = snprintf(buffer, sizeof buffer,
                          "GET %s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%ld-%ld\r\nConnection: close\r\n\r\n", path, host,
                          it->offset, it->offset + it->left - 1);
    if (write(it->socket, buffer, length) != length) die("request");
    if (pipe2(it->pipe, O_NONBLOCK)) die("pipe");
    fcntl(it->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
}

/* Takes the response's head off the socket once all of it is there. */
static void read_head(struct connection *it) {
    ssize_t peeked = recv(it->socket, buffer, sizeof buffer, MSG_PEEK);
    if (peeked <= 0) die("response");
    char *end = memmem(buffer, peeked, "\r\n\r\n", 4);
    if (!end) return;
    if (memcmp(buffer + strlen("HTTP/1.1 "), "206", 3)) {
        fprintf(stderr, "floor: %.40s\n", buffer);
        exit(1);
    }
    if (recv(it->socket, buffer, end + 4 - buffer, 0) != end + 4 - buffer) die("response");
    it->is_body = 1;
}

static ssize_t move_by_write(struct connection *it, int file) {
    ssize_t length = recv(it->socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (length > 0 && pwrite(file, buffer, length, it->offset) != length) die("pwrite");
    return length;
}

static ssize_t move_by_splice(struct connection *it, int file) {
    ssize_t length = splice(it->socket, NULL, it->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    loff_t offset = it->offset;
    for (ssize_t left = length; left > 0;) {
        ssize_t written = splice(it->pipe[0], NULL, file, &offset, left, SPLICE_F_MOVE);
        if (written <= 0) die("splice to the file");
        left -= written;
    }
    return length;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: floor write|splice CONNECTIONS HOST PORT PATH SIZE OUT\n");
        return 2;
    }
    int splices = !strcmp(argv[1], "splice");
    int count = atoi(argv[2]);
    long size = atol(argv[6]);
    if (count < 1 || count > MAX_CONNECTIONS || size < count) die("arguments");
    int file = open(argv[7], O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) die(argv[7]);
    int poll = epoll_create1(0);

    struct connection connections[MAX_CONNECTIONS] = {0};
    for (int i = 0; i < count; i++) {
        struct connection *it = &connections[i];
        it->offset = size / count * i;
        it->left = (i == count - 1 ? size : size / count * (i + 1)) - it->offset;
        open_connection(it, argv[3], atoi(argv[4]), argv[5]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = it};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, it->socket, &event)) die("epoll_ctl");
    }
    for (int live = count; live > 0;) {
        struct epoll_event events[MAX_CONNECTIONS];
        int ready = epoll_wait(poll, events, MAX_CONNECTIONS, -1);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct connection *it = events[i].data.ptr;
            if (!it->is_body) {
                read_head(it);
                continue;
            }
            errno = 0;
            ssize_t length = splices ? move_by_splice(it, file) : move_by_write(it, file);
            if (length < 0 && errno == EAGAIN) continue;
            if (length <= 0) die("the connection ended early");
            it->offset += length;
            it->left -= length;
            if (it->left == 0) {
                close(it->socket);
                live--;
            }
        }
    }
    return 0;
}
