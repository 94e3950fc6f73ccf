// Metrics in words, with their unit and better direction.

/** Describes metrics: their unit, and their better direction. */
export interface Metrics {
  unit(metric: string): string;
  better(metric: string): "more" | "less" | "neither";
}

const WORDS: Record<string, string> = {
  ops_per_s: "operations per second",
  wkb_per_op: "written per operation",
  wkb_per_op_with_drain: "written per operation, with the drain",
  wkb_per_row_with_settle: "written per row loaded, with the settle",
  proc_wkb_per_op: "written by the process per operation",
  rkb_per_op: "read per operation",
  reads_per_op: "reads per operation",
  writes_per_op: "writes per operation",
  cpu_us_per_op: "CPU per operation",
  cpu_us_per_op_with_drain: "CPU per operation, with the drain",
  cpu_us_per_row_with_settle: "CPU per row loaded, with the settle",
  host_cpu_us_per_op: "CPU of the host per operation",
  host_cpu_us_per_op_with_drain: "CPU of the host per operation, with the drain",
  server_cpu_us_per_op: "CPU of the server per operation",
  client_cpu_us_per_op: "CPU of the clients per operation",
  data_bytes: "size on disk, without logs",
  size_bytes: "size on disk, with logs",
  rss_bytes: "resident memory",
  retries_per_op: "retries per operation",
  device_await_ms: "time of a device read or write",
  device_queue_length: "requests in flight at the device",
  device_utilisation_percent: "device in use",
  device_busy_us_per_op: "device time per operation",
  host_cpu_percent: "CPU of the host",
};

/** `99th percentile of get_node`, `KB written per operation`; other metrics have their stable name. */
export function metricName(metric: string): string {
  const percentile = /^(.+)\.p99_ms$/.exec(metric)?.[1];
  if (percentile !== undefined) return `99th percentile of ${percentile}`;
  return WORDS[metric] ?? metric;
}

export function isBytes(context: Metrics, metric: string): boolean {
  return context.unit(metric) === "B";
}

/** `KB/op, less is better`. */
export function unitAndDirection(context: Metrics, metric: string): string {
  const unit = metric.endsWith(".p99_ms") ? "ms" : context.unit(metric);
  const better = metric.endsWith(".p99_ms") ? "less" : context.better(metric);
  // Sizes include their unit.
  const words = [unit === "B" ? "" : unit, better === "neither" ? "" : `${better} is better`];
  return words.filter(Boolean).join(", ");
}

/** A heading: words begin with a capital, and stable names are unchanged. */
export function metricTitle(metric: string): string {
  const name = metricName(metric);
  return name === metric ? name : name.charAt(0).toUpperCase() + name.slice(1);
}
