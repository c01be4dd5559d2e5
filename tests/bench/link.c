/* A network link with delay, rate, loss and a bounded queue between two network namespaces, in user space: what
 * `tc netem` does, for kernels without it.
 *
 *   link NAMESPACE NAMESPACE DELAY_US MBIT_PER_S LOSS_PPM QUEUE_BYTES
 *
 * Makes a TUN device "link0" in both namespaces (paths such as /run/netns/NAME) and carries packets from one to the other.
 * Each direction by itself: a packet is lost with probability LOSS_PPM / 1e6; is dropped when QUEUE_BYTES are waiting to be
 * sent; is sent at MBIT_PER_S; and arrives DELAY_US later. Says "ready" on standard output when the devices are there, and
 * ends, with its devices, when standard input does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* A device's packets are taken in bursts of at most this many, so that none starves the other's due packets. */
#define BURST 256
/* The devices' MTU is 1500. */
#define MAX_PACKET 2048

struct packet {
    struct packet *next;
    long due_ns;
    int length;
    char bytes[];
};

/* One direction. */
struct line {
    int from, to;
    struct packet *first, **last;
    long free_at_ns; /* when the last packet will have left the bottleneck */
};

static long delay_ns, mbit_per_s, loss_ppm, queue_bytes;

static void die(const char *act) {
    perror(act);
    exit(1);
}

static long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* xorshift64: the same losses in the same order in every run of this program. */
static long next_ppm(void) {
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % 1000000;
}

static int open_device(const char *namespace) {
    int there = open(namespace, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET)) die(namespace);
    close(there);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_name = "link0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    if (device < 0 || ioctl(device, TUNSETIFF, &request)) die("/dev/net/tun");
    return device;
}

static void deliver(struct line *line, long now) {
    while (line->first && line->first->due_ns <= now) {
        struct packet *packet = line->first;
        /* A device that is full or not up loses the packet, as a wire would. */
        ssize_t written = write(line->to, packet->bytes, packet->length);
        (void)written;
        line->first = packet->next;
        if (!line->first) line->last = &line->first;
        free(packet);
    }
}

static void accept_packet(struct line *line, const char *bytes, int length) {
    if (next_ppm() < loss_ppm) return;
    long now = now_ns();
    long starts = line->free_at_ns > now ? line->free_at_ns : now;
    /* Mbit/s are bits per microsecond. */
    if ((starts - now) / 1000 * mbit_per_s / 8 > queue_bytes) return;
    struct packet *packet = malloc(sizeof *packet + length);
    if (!packet) die("malloc");
    line->free_at_ns = starts + length * 8000L / mbit_per_s;
    packet->next = NULL;
    packet->due_ns = line->free_at_ns + delay_ns;
    packet->length = length;
    memcpy(packet->bytes, bytes, length);
    *line->last = packet;
    line->last = &packet->next;
}

static void take(struct line *line) {
    char bytes[MAX_PACKET];
    for (int i = 0; i < BURST; i++) {
        ssize_t length = read(line->from, bytes, sizeof bytes);
        if (length <= 0) return;
        accept_packet(line, bytes, length);
    }
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: link NAMESPACE NAMESPACE DELAY_US MBIT_PER_S LOSS_PPM QUEUE_BYTES\n");
        return 2;
    }
    delay_ns = atol(argv[3]) * 1000;
    mbit_per_s = atol(argv[4]);
    loss_ppm = atol(argv[5]);
    queue_bytes = atol(argv[6]);
    if (mbit_per_s < 1) return 2;
    int devices[2] = {open_device(argv[1]), open_device(argv[2])};
    struct line lines[2] = {{.from = devices[0], .to = devices[1]}, {.from = devices[1], .to = devices[0]}};
    for (int i = 0; i < 2; i++) lines[i].last = &lines[i].first;
    puts("ready");
    fflush(stdout);

    for (;;) {
        long next_ns = -1;
        for (int i = 0; i < 2; i++) {
            deliver(&lines[i], now_ns());
            struct packet *first = lines[i].first;
            if (first && (next_ns < 0 || first->due_ns < next_ns)) next_ns = first->due_ns;
        }
        long wait_ns = next_ns < 0 ? 0 : next_ns - now_ns();
        if (wait_ns < 0) wait_ns = 0;
        struct timespec wait = {.tv_sec = wait_ns / 1000000000L, .tv_nsec = wait_ns % 1000000000L};
        struct pollfd polled[3] = {{devices[0], POLLIN, 0}, {devices[1], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (ppoll(polled, 3, next_ns < 0 ? NULL : &wait, NULL) < 0 && errno != EINTR) die("ppoll");
        for (int i = 0; i < 2; i++)
            if (polled[i].revents & POLLIN) take(&lines[i]);
        if (polled[2].revents) return 0;
    }
}
