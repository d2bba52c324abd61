import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

const text = z.string().min(1);
const texts = z.record(z.string(), z.string());

/** A gateway to compare with. In the texts of all fields, `fillIn` replaces the names in braces. */
const peerSchema = z.strictObject({
  name: text,
  /** What it does and leaves undone; shown below the table. */
  notes: text,
  /** Lines of a shell that install it; shown when it can't be started. */
  install: text,
  command: z.array(text).min(1),
  /** The program's own environment, besides that of the suite. */
  environment: texts.default({}),
  /** Files to write into its folder before it starts. */
  files: texts.default({}),
  /** Default: a free one, as `{port}`. */
  port: z.int().optional(),
  /** A file into which it writes the port of its own choice. */
  port_file: text.optional(),
  headers: texts.default({}),
  /** Default: /v1/chat/completions. */
  chat_path: text.optional(),
  /** Fields of a request's body; null: left out. */
  body: z.record(z.string(), z.json()).default({}),
  /** Answered with 200 when it is ready; default: a port that accepts connections will do. */
  ready_path: text.optional(),
  start_limit_seconds: z.number().positive().default(15),
  warm_up_seconds: z.number().positive().default(8),
});

export type PeerDescription = z.output<typeof peerSchema>;

/** YAML, of which JSON is a part. */
export function readPeerDescription(path: string): PeerDescription {
  const result = peerSchema.safeParse(parse(readFileSync(path, "utf8")));
  if (!result.success) throw new Error(`${path}: ${z.prettifyError(result.error)}`);
  return result.data;
}

/** What the names in braces stand for. */
export interface Places {
  /** The port on which it should listen. */
  readonly port: string;
  /** Host and port of the static upstream, and its port. */
  readonly upstream: string;
  readonly upstream_port: string;
  /** Its folder of this run, with its files. */
  readonly folder: string;
  /** Where peers are installed. */
  readonly installed: string;
}

/** Other braces stay as they are. */
export function fillIn(template: string, places: Places): string {
  return Object.entries({ ...places }).reduce(
    (filled, [name, value]) => filled.replaceAll(`{${name}}`, value),
    template,
  );
}
