import { z } from "zod";
import { Secret } from "../../domain/keys/secret.ts";
import {
  duration,
  listenAddress,
  requiredWholeNumber,
  size,
  text,
  wholeNumber,
} from "../../settings/values.ts";

/** What the gateway needs: where it listens, what it stores, how long it waits. */

export const listenSchema = z
  .strictObject({
    data: listenAddress("Address of the data plane, which callers use.", "127.0.0.1:8080"),
    admin: listenAddress("Address of the control plane.", "127.0.0.1:8081"),
  })
  .refine(
    ({ data, admin }) =>
      data.port === 0 || data.port !== admin.port || data.hostname !== admin.hostname,
    { path: ["admin"], error: "must differ from listen.data" },
  )
  .prefault({})
  .describe("Addresses, as host:port. Port 0 takes any free port.");

export const storageSchema = z
  .strictObject({
    url: text("`sqlite:PATH` (relative to the working directory) or `sqlite::memory:`.")
      .transform((value, context) => {
        const message = storageProblem(value);
        if (message === undefined) return { backend: "sqlite" as const, path: value.slice(7) };
        context.issues.push({ code: "custom", message, input: value });
        return z.NEVER;
      })
      .prefault("sqlite:./data/sluice.db")
      .describe("`sqlite:PATH` (relative to the working directory) or `sqlite::memory:`."),
  })
  .prefault({})
  .describe("The database of keys and of the usage ledger.")
  .transform(({ url }) => url);

function storageProblem(url: string): string | undefined {
  if (/^postgres(ql)?:/i.test(url)) {
    return "postgres is not supported by this version; use sqlite:PATH";
  }
  if (!url.startsWith("sqlite:")) return "must be sqlite:PATH or sqlite::memory:";
  if (url.startsWith("sqlite://")) return "must be sqlite:PATH, without slashes before the path";
  return url.length === 7 ? "must name a file: sqlite:PATH or sqlite::memory:" : undefined;
}

export const dataDirectorySchema = text(
  "Folder of the usage spool and of generated secrets, relative to the working directory.",
).prefault("./data");

export const limitsSchema = z
  .strictObject({
    store: text("Where requests and tokens are counted: `memory`, for one gateway.")
      .transform((value, context) => {
        if (value === "memory") return "memory" as const;
        const isShared = /^(valkey|redis)s?:/i.test(value);
        const message = isShared
          ? "a shared store is not supported by this version; use memory"
          : "must be memory";
        context.issues.push({ code: "custom", message, input: value });
        return z.NEVER;
      })
      .prefault("memory")
      .describe("Where requests and tokens are counted: `memory`, for one gateway."),
    default_output_tokens: wholeNumber({
      about: "Output tokens reserved for a call that names no cap, until usage teaches better.",
      min: 1,
      max: 10_000_000,
      initial: 1024,
    }),
  })
  .prefault({})
  .describe("Rate limits.")
  .transform((limits) => ({
    store: limits.store,
    defaultOutputTokens: limits.default_output_tokens,
  }));

export const streamsSchema = z
  .strictObject({
    keep_alive_interval: duration({
      about: "Silence of a stream after which a keep-alive is sent.",
      min: "1s",
      max: "5m",
      initial: "15s",
    }),
    keep_alive: z
      .enum(["comment", "chunk", "off"])
      .prefault("comment")
      .describe(
        "Form of a keep-alive: an SSE comment with an empty line behind it, an empty chunk, or none.",
      ),
    hold_headers: duration({
      about: "How long the answer's headers wait for the first event.",
      min: "0s",
      max: "10m",
      initial: "10s",
    }),
    write_timeout: duration({
      about: "How long a caller may refuse to read before its stream is closed.",
      min: "1s",
      max: "10m",
      initial: "30s",
    }),
    usage_timeout: duration({
      about:
        "How long the upstream's count of tokens is awaited when an answer is finished and its " +
        "caller has left.",
      min: "100ms",
      max: "1m",
      initial: "5s",
    }),
    malformed_event: z
      .enum(["skip", "end"])
      .prefault("skip")
      .describe(
        "What an event of an upstream's stream that makes no sense does: it is skipped, at most ten " +
          "times in one answer and never inside a tool call, or it ends the answer.",
      ),
  })
  .prefault({})
  .describe("Streamed answers.")
  .transform((streams) => ({
    keepAliveIntervalMs: streams.keep_alive_interval,
    keepAlive: streams.keep_alive,
    holdHeadersMs: streams.hold_headers,
    writeTimeoutMs: streams.write_timeout,
    malformedEvent: streams.malformed_event,
    usageTimeoutMs: streams.usage_timeout,
  }));

export const shutdownSchema = z
  .strictObject({
    pre_stop: duration({
      about:
        "How long new calls are still served after a request to stop, so that balancers can turn away " +
        "first. Not ready from the start; every answer closes its connection.",
      min: "0s",
      max: "10m",
      initial: "5s",
    }),
    drain_timeout: duration({
      about: "How long running calls may go on once new ones are refused.",
      min: "0s",
      max: "1h",
      initial: "30s",
    }),
  })
  .prefault({})
  .describe("Stopping.")
  .transform((shutdown) => ({
    preStopMs: shutdown.pre_stop,
    drainTimeoutMs: shutdown.drain_timeout,
  }));

const pepper = z
  .string()
  .min(32)
  .transform((value) => new Secret(value));

const peppersAbout =
  "Keys of the digests under which API keys are stored and of the seals of the audit, at least 32 " +
  "characters each. The first makes what is new, all verify what is there: put a new one in front " +
  "to rotate. Without any, one is generated and kept in `data_dir`.";

export const authSchema = z
  .strictObject({
    peppers: z
      .array(pepper.meta({ title: "secret", description: "A pepper." }))
      .min(1)
      .max(10)
      .optional()
      .describe(peppersAbout),
    pepper: pepper
      .optional()
      .meta({ title: "secret", description: "The same as `auth.peppers` with this one alone." }),
    snapshot_max_age: duration({
      about: "How long known keys work while the database cannot be read.",
      min: "1s",
      max: "24h",
      initial: "15m",
    }),
  })
  .refine((auth) => auth.pepper === undefined || auth.peppers === undefined, {
    path: ["pepper"],
    error: "must not be set beside auth.peppers; put it into that list",
  })
  .prefault({})
  .describe("Authentication.")
  .transform((auth) => ({
    /** The first makes digests, all verify them; if empty, the data directory's pepper is used. */
    peppers: auth.peppers ?? (auth.pepper === undefined ? [] : [auth.pepper]),
    snapshotMaxAgeMs: auth.snapshot_max_age,
  }));

export const ledgerSchema = z
  .strictObject({
    batch_rows: wholeNumber({
      about: "Most usage records of one database transaction.",
      min: 1,
      max: 10_000,
      initial: 500,
    }),
    flush_interval: duration({
      about: "Longest time between two writes while records wait.",
      min: "10ms",
      max: "1m",
      initial: "1s",
    }),
    queue_rows: requiredWholeNumber({
      about:
        "Has no effect any more, because all usage records wait in the spool, which `spool_limit` bounds. " +
        "It is accepted with a warning: remove it.",
      min: 1000,
      max: 10_000_000,
    }).optional(),
    sync: z
      .enum(["none", "group"])
      .prefault("group")
      .describe(
        "Whether the spool is forced to the disk: `group` every 20 ms, which a power cut may cost; " +
          "`none` leaves it to the system. The end of the process loses nothing either way.",
      ),
    spool_limit: size({
      about:
        "Largest spool of a worker; when it is full, its calls are refused. From 80 % on the log warns.",
      min: "64KiB",
      max: "1024GiB",
      initial: "1GiB",
    }),
    segment_size: size({
      about: "Size of one file of the spool.",
      min: "16KiB",
      max: "1GiB",
      initial: "8MiB",
    }),
  })
  .refine((ledger) => ledger.spool_limit >= 4 * ledger.segment_size, {
    path: ["spool_limit"],
    error: "must be at least four times ledger.segment_size",
  })
  .prefault({})
  .describe("The record of usage.")
  .transform((ledger) => ({
    batchRows: ledger.batch_rows,
    flushIntervalMs: ledger.flush_interval,
    /** Whether the file sets `queue_rows`, which has no effect. */
    setsQueueRows: ledger.queue_rows !== undefined,
    sync: ledger.sync,
    spoolLimitBytes: ledger.spool_limit,
    segmentBytes: ledger.segment_size,
  }));
