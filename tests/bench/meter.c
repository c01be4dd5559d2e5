/* Runs a program and writes what it cost: "wall_ns user_us system_us peak_rss_kib wait_status\n" to a file descriptor.
 *
 *   meter REPORT_FD PROGRAM [ARGUMENT]...
 *
 * A program of its own, because Linux counts the memory of the process that started a program into that program's peak:
 * started by Python, everything seems to need 14 MiB at least. The cost includes every child that the program waited for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long in_us(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: meter REPORT_FD PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    int report = atoi(argv[1]);
    fcntl(report, F_SETFD, FD_CLOEXEC);

    long long start = now_ns();
    pid_t child = fork();
    if (child < 0) {
        perror("meter: fork");
        return 2;
    }
    if (child == 0) {
        /* Nothing measured outlives its meter. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR) {
            perror("meter: wait4");
            return 2;
        }
    long long wall = now_ns() - start;
    dprintf(report, "%lld %lld %lld %ld %d\n", wall, in_us(usage.ru_utime), in_us(usage.ru_stime), usage.ru_maxrss, status);
    return 0;
}
