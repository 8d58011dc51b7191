// As consumer.c, in C++: one kernel with a host body, by ACS_LAUNCH_ON.
#include <acs.h>

#include <cstdio>

static void fill(const acs_grid *, void *const *args)
{
    const int n = *static_cast<int *>(args[0]);
    float *x = *static_cast<float **>(args[1]);
    for (int i = 0; i < n; i++)
        x[i] = 2.5f;
}

int main()
{
    static const acs::kernel<int, float *> kernel = ACS_KERNEL_HOST_INIT("fill", fill);
    float x[16] = {};
    acs_options options;
    acs_context *context = nullptr;

    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return 2;
    options.backend = ACS_BACKEND_HOST;
    if (acs_open(&options, &context) != ACS_OK)
        return 1;
    const acs_op op = ACS_LAUNCH_ON(context, kernel, 1, 32, 0, ACS_ARGS(16, &x[0]), ACS_USES(ACS_OUT(x, sizeof x)));
    const acs_status status = op ? acs_sync(context) : acs_last_error(nullptr);
    const acs_status closed = acs_close(context);
    std::printf("%s, %s, %g\n", acs_status_name(status), acs_status_name(closed), static_cast<double>(x[15]));
    return !(status == ACS_OK && closed == ACS_OK && x[0] == 2.5f && x[15] == 2.5f);
}
