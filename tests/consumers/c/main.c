/* The C interface as a plain C program uses it: load, run, read, close; and what it refuses. */
#include <oncilla/oncilla.h>
#include <oncilla/oncilla_opencl.h>
#include <oncilla/oncilla_precision.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                       \
  do {                                                          \
    if (!(condition)) {                                         \
      printf("line %d: %s does not hold\n", __LINE__, #condition); \
      ++failures;                                               \
    }                                                           \
  } while (0)

static void Need(oncilla_status* status) {
  if (status == NULL) return;
  printf("%s (stage %s)\n", oncilla_status_message(status), oncilla_status_stage(status));
  exit(1);
}

static int Refused(oncilla_status* status, oncilla_code code) {
  const int refused = oncilla_status_code(status) == code;
  if (!refused) printf("got %d: %s\n", oncilla_status_code(status), oncilla_status_message(status));
  oncilla_status_free(status);
  return refused;
}

static long allocated = 0;
static void* Allocate(void* user, size_t bytes, size_t alignment) {
  (void)user;
  allocated += (long)bytes;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void Release(void* user, void* memory, size_t bytes) {
  (void)user;
  allocated -= (long)bytes;
  free(memory);
}
static int logged = 0;
static void Log(void* user, oncilla_log_level level, const char* message) {
  (void)user;
  (void)level;
  if (message[0] != '\0') ++logged;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  oncilla_runtime_options runtime_options = ONCILLA_INIT(oncilla_runtime_options);
  runtime_options.log = Log;
  runtime_options.log_level = ONCILLA_LOG_DEBUG;
  runtime_options.allocate = Allocate;
  runtime_options.release = Release;
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", ONCILLA_VERSION_MAJOR, ONCILLA_VERSION_MINOR,
           ONCILLA_VERSION_PATCH);
  EXPECT(strcmp(version, oncilla_version()) == 0);
  EXPECT(strcmp(oncilla_status_stage(NULL), "") == 0);
  oncilla_runtime* runtime = NULL;
  Need(oncilla_runtime_create(&runtime_options, &runtime));
  EXPECT(logged > 0);
  oncilla_opencl_host host = ONCILLA_INIT(oncilla_opencl_host);
  oncilla_runtime* borrowed = NULL;
  EXPECT(Refused(oncilla_opencl_runtime_create(NULL, &host, &borrowed), ONCILLA_INVALID_ARGUMENT));
  EXPECT(Refused(oncilla_enqueued_trace(NULL, ONCILLA_TRACE_CHROME, NULL, 0, NULL),
                 ONCILLA_INVALID_ARGUMENT));
  oncilla_device_info device = ONCILLA_INIT(oncilla_device_info);
  Need(oncilla_runtime_device(runtime, 0, &device));
  EXPECT(strcmp(device.backend, "cpu") == 0);
  EXPECT(strcmp(device.name, "/job:localhost/replica:0/task:0/device:CPU:0") == 0);
  oncilla_status* out_of_range = oncilla_runtime_device(runtime, 999, &device);
  EXPECT(strcmp(oncilla_status_stage(out_of_range), "options") == 0);
  EXPECT(Refused(out_of_range, ONCILLA_INVALID_ARGUMENT));

  /* Structs: a short one has defaults for the rest, a longer one must have a zero tail. */
  struct {
    oncilla_session_options known;
    char later[16];
  } grown;
  memset(&grown, 0, sizeof(grown));
  grown.known.size = sizeof(grown);
  grown.known.device = "cpu";
  oncilla_session* session = NULL;
  Need(oncilla_session_create(runtime, &grown.known, &session));
  oncilla_session_free(session);
  grown.later[3] = 1;
  EXPECT(Refused(oncilla_session_create(runtime, &grown.known, &session),
                 ONCILLA_INVALID_ARGUMENT));
  oncilla_session_options zero;
  memset(&zero, 0, sizeof(zero));
  EXPECT(Refused(oncilla_session_create(runtime, &zero, &session), ONCILLA_INVALID_ARGUMENT));
  oncilla_session_options options = ONCILLA_INIT(oncilla_session_options);
  options.device = "gpu:77";
  EXPECT(Refused(oncilla_session_create(runtime, &options, &session), ONCILLA_NOT_FOUND));
  oncilla_session_options shorter = ONCILLA_INIT(oncilla_session_options);
  shorter.device = "cpu";
  shorter.size = offsetof(oncilla_session_options, strict);
  shorter.strict = 12345; /* beyond the size: not read */
  Need(oncilla_session_create(runtime, &shorter, &session));

  oncilla_model* model = NULL;
  EXPECT(Refused(oncilla_model_load(session, "/nonexistent", NULL, &model), ONCILLA_NOT_FOUND));
  oncilla_load_options load = ONCILLA_INIT(oncilla_load_options);
  load.stored_devices = 7;
  EXPECT(Refused(oncilla_model_load(session, argv[1], &load, &model), ONCILLA_INVALID_ARGUMENT));
  load.stored_devices = ONCILLA_STORED_DEVICES_SOFT;
  Need(oncilla_model_load(session, argv[1], &load, &model));
  EXPECT(oncilla_model_signature_count(model) == 1);
  EXPECT(strcmp(oncilla_model_signature_key(model, 0), "serving_default") == 0);
  oncilla_tensor_info info = ONCILLA_INIT(oncilla_tensor_info);
  Need(oncilla_model_input(model, 0, 0, &info));
  EXPECT(strcmp(info.name, "image") == 0 && info.dtype == ONCILLA_UINT8);
  EXPECT(info.rank == 4 && info.dims[0] == -1 && info.dims[3] == 3);

  const int64_t dims[4] = {1, 40, 50, 3};
  unsigned char* pixels = calloc(1, 40 * 50 * 3);
  oncilla_tensor* image = NULL;
  EXPECT(Refused(oncilla_tensor_create(ONCILLA_UINT8, dims, 4, pixels, 7, &image),
                 ONCILLA_INVALID_ARGUMENT));
  Need(oncilla_tensor_wrap(ONCILLA_UINT8, dims, 4, pixels, 40 * 50 * 3, free, pixels, &image));
  const char* names[] = {"image"};
  const oncilla_tensor* inputs[] = {image};
  oncilla_result* result = NULL;
  const char* wrong[] = {"imag"};
  EXPECT(Refused(oncilla_model_run(model, wrong, inputs, 1, NULL, &result), ONCILLA_NOT_FOUND));
  Need(oncilla_model_run(model, names, inputs, 1, NULL, &result));
  oncilla_tensor* kept = NULL;
  Need(oncilla_tensor_share(oncilla_result_tensor(result, 0), &kept));
  EXPECT(oncilla_tensor_rank(kept) == oncilla_tensor_rank(oncilla_result_tensor(result, 0)));
  oncilla_tensor_free(kept);
  oncilla_precision_options precision = ONCILLA_INIT(oncilla_precision_options);
  oncilla_precision_check* check = NULL;
  precision.storage = "fp16";
  precision.session = &shorter;
  Need(oncilla_precision_check_run(runtime, argv[1], names, inputs, 1, &precision, &check));
  oncilla_number_errors errors = ONCILLA_INIT(oncilla_number_errors);
  Need(oncilla_precision_check_output(check, 0, &errors));
  EXPECT(oncilla_precision_check_output_count(check) == 3 && errors.overflowed == 0);
  oncilla_precision_check_free(check);
  oncilla_tensor_free(image);
  EXPECT(oncilla_result_count(result) == 3);
  const oncilla_tensor* probability = oncilla_result_find(result, "probability");
  EXPECT(oncilla_tensor_elements(probability) == 5);
  EXPECT(((const float*)oncilla_tensor_data(probability))[0] > 0);
  size_t length = 0;
  EXPECT(oncilla_tensor_string(oncilla_result_find(result, "label"), 4, &length) != NULL);
  EXPECT(length > 0);
  EXPECT(oncilla_result_find(result, "nothing") == NULL);
  EXPECT(strstr(oncilla_result_report(result), "CPU:0 ran ") != NULL);
  EXPECT(allocated > 1000000);

  oncilla_memory_info memory = ONCILLA_INIT(oncilla_memory_info);
  Need(oncilla_session_memory(session, "/job:localhost/replica:0/task:0/device:CPU:0", &memory));
  EXPECT(memory.pool_bytes > 0 && memory.in_use_bytes > 0);
  EXPECT(memory.total_bytes == memory.pool_bytes && memory.total_limit_bytes > 0);
  EXPECT(memory.fragmentation >= 0 && memory.fragmentation <= 1);
  int64_t released = 0;
  size_t needed = 0;
  char report[4096];
  Need(oncilla_session_memory_report(session, 1, report, sizeof(report), &needed));
  EXPECT(needed > sizeof(report) ? strlen(report) == sizeof(report) - 1 : needed > 100);
  EXPECT(strstr(report, "\"limit_source\"") != NULL);
  char* whole = malloc(1 << 20);
  Need(oncilla_model_memory_report(model, whole, 1 << 20, &needed));
  EXPECT(needed == strlen(whole) + 1 && strstr(whole, "\"constants\"") != NULL);
  EXPECT(strstr(whole, "\"plans\":[{") != NULL && strstr(whole, "\"owners\"") == NULL);
  free(whole);
  Need(oncilla_session_record_memory(session, 10));
  Need(oncilla_session_defragment(session, &released));
  EXPECT(released > 0);
  memory.size = sizeof(memory);
  Need(oncilla_session_memory(session, "/job:localhost/replica:0/task:0/device:CPU:0", &memory));
  EXPECT(memory.peak_bytes > memory.pool_bytes);
  Need(oncilla_session_reset_peaks(session));
  Need(oncilla_session_memory(session, "/job:localhost/replica:0/task:0/device:CPU:0", &memory));
  EXPECT(memory.peak_bytes == memory.pool_bytes);
  Need(oncilla_session_close(session, &released));
  EXPECT(released == memory.pool_bytes);
  Need(oncilla_runtime_close_sessions(runtime, &released, report, sizeof(report), &needed));
  EXPECT(released == 0);
  EXPECT(allocated == 0);
  EXPECT(Refused(oncilla_model_run(model, names, inputs, 0, NULL, &result),
                 ONCILLA_FAILED_PRECONDITION));
  oncilla_result_free(result);
  oncilla_model_free(model);
  oncilla_session_free(session);
  oncilla_runtime_free(runtime);
  printf("%s\n%s\n", oncilla_version(), failures == 0 ? "consumer ok" : "consumer FAILED");
  return failures != 0;
}
