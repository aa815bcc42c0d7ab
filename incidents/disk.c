/* A disk whose answers take as long as a control file says: the lowest part of each disk of the incident rig.
 *
 *   nbdkit cc incidents/disk.c image=FILE control=FILE
 *
 * nbdkit compiles it when it starts. The control file holds four 32-bit numbers and is read anew at every request, so
 * that the disk becomes slow, or stands still, while it is in use: microseconds a read takes, a write, a flush, and
 * whether it stands still (1). Requests are answered side by side: the time one takes does not depend on the others,
 * which is what "constant latency" means.
 */
#define NBDKIT_API_VERSION 2
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nbdkit-plugin.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define LOOK_AGAIN_US 2000

enum { READ_US, WRITE_US, FLUSH_US, STANDS_STILL, WORDS };

static char *image_path, *control_path;
static int image = -1;
static const volatile uint32_t *control;

static int take_config(const char *key, const char *value)
{
    if (strcmp(key, "image") == 0)
        image_path = nbdkit_realpath(value);
    else if (strcmp(key, "control") == 0)
        control_path = nbdkit_realpath(value);
    else {
        nbdkit_error("unknown parameter %s", key);
        return -1;
    }
    return image_path || control_path ? 0 : -1;
}

static int get_ready(void)
{
    if (image_path == NULL || control_path == NULL) {
        nbdkit_error("image= and control= are needed");
        return -1;
    }
    image = open(image_path, O_RDWR | O_CLOEXEC);
    int file = open(control_path, O_RDONLY | O_CLOEXEC);
    if (image < 0 || file < 0) {
        nbdkit_error("cannot open %s: %m", image < 0 ? image_path : control_path);
        return -1;
    }
    control = mmap(NULL, WORDS * sizeof *control, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (control == MAP_FAILED) {
        nbdkit_error("cannot map %s: %m", control_path);
        return -1;
    }
    return 0;
}

/* The timer's default slack of 50 us would be added to each of these waits. */
static void sleep_us(uint32_t us)
{
    static __thread int is_exact;
    if (!is_exact) {
        prctl(PR_SET_TIMERSLACK, 1000);
        is_exact = 1;
    }
    struct timespec left = {us / 1000000, (long)(us % 1000000) * 1000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void wait_for(int which)
{
    while (control[STANDS_STILL])
        sleep_us(LOOK_AGAIN_US);
    sleep_us(control[which]);
}

static void *open_disk(int readonly)
{
    (void)readonly;
    return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t get_size(void *handle)
{
    (void)handle;
    struct stat status;
    if (fstat(image, &status) != 0) {
        nbdkit_error("fstat: %m");
        return -1;
    }
    return status.st_size;
}

static int can_multi_conn(void *handle)
{
    (void)handle;
    return 1;
}

static int read_blocks(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
    (void)handle;
    (void)flags;
    wait_for(READ_US);
    for (uint32_t done = 0; done < count;) {
        ssize_t got = pread(image, (char *)buffer + done, count - done, offset + done);
        if (got <= 0) {
            nbdkit_error("pread: %m");
            return -1;
        }
        done += got;
    }
    return 0;
}

static int write_blocks(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
    (void)handle;
    wait_for(WRITE_US);
    for (uint32_t done = 0; done < count;) {
        ssize_t put = pwrite(image, (const char *)buffer + done, count - done, offset + done);
        if (put <= 0) {
            nbdkit_error("pwrite: %m");
            return -1;
        }
        done += put;
    }
    if (flags & NBDKIT_FLAG_FUA)
        sleep_us(control[FLUSH_US]);
    return 0;
}

/* The image lies in memory: there is nothing to flush but the time a flush takes. */
static int flush_blocks(void *handle, uint32_t flags)
{
    (void)handle;
    (void)flags;
    wait_for(FLUSH_US);
    return 0;
}

static struct nbdkit_plugin plugin = {
    .name = "disk",
    .description = "a disk whose answers take as long as a control file says",
    .config = take_config,
    .get_ready = get_ready,
    .open = open_disk,
    .get_size = get_size,
    .can_multi_conn = can_multi_conn,
    .pread = read_blocks,
    .pwrite = write_blocks,
    .flush = flush_blocks,
};

NBDKIT_REGISTER_PLUGIN(plugin)
