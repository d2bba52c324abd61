import { chmodSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import { oddKind } from "../../domain/system-files.ts";
import { Secret } from "../../domain/keys/secret.ts";
import { writeOnce } from "./write-once.ts";

/** The secret under which API keys are digested. Without it every key is lost. */
export interface Pepper {
  readonly secret: Secret;
  /** For messages: the setting or the file it comes from. */
  readonly source: string;
  /** Whether it was just generated and is not stored yet. */
  readonly isNew: boolean;
}

export interface PepperOptions {
  readonly configured: Secret | undefined;
  readonly dataDir: string;
  readonly random: RandomBytes;
}

/** The configured pepper, or that of `<data_dir>/pepper`, or a new one. */
export function loadPepper({ configured, dataDir, random }: PepperOptions): Pepper {
  if (configured !== undefined) return { secret: configured, source: "auth.peppers", isNew: false };
  const source = pepperPath(dataDir);
  const existing = readPepper(source);
  if (existing !== undefined) return { secret: existing, source, isNew: false };
  const text = Buffer.from(random(new Uint8Array(32))).toString("hex");
  return { secret: new Secret(text), source, isNew: true };
}

/** Writes a new pepper to its file, readable by its owner only. Throws when the file exists. */
export function keepPepper({ secret, source }: Pepper): void {
  writeOnce(source, `${secret.reveal()}\n`);
}

export function pepperPath(dataDir: string): string {
  return join(dataDir, "pepper");
}

function readPepper(path: string): Secret | undefined {
  try {
    const odd = oddKind(statSync(path));
    if (odd !== undefined) throw new Error(`${path} is ${odd}; it must be a file`);
    const text = readFileSync(path, "utf8").trim();
    if (text.length < 32) throw new Error(`${path} holds no pepper of 32 characters or more`);
    chmodSync(path, 0o600);
    return new Secret(text);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
