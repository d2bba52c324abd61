import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { oddKind } from "../domain/file-kind.ts";
import { Secret } from "../domain/secret.ts";

export interface PepperOptions {
  readonly configured: Secret | undefined;
  readonly dataDir: string;
  readonly random: (target: Uint8Array) => Uint8Array;
  /** Told when there was no pepper: keys of before, if any, are lost. */
  readonly onCreated?: (path: string) => void;
}

/**
 * The secret under which API keys are digested: the configured one, or one made at first use and
 * kept in `<data_dir>/pepper`, readable by its owner only. Whoever loses it loses every key.
 */
export function loadPepper(options: PepperOptions): Secret {
  const { configured, dataDir, random, onCreated } = options;
  if (configured !== undefined) return configured;
  const path = join(dataDir, "pepper");
  const existing = readPepper(path);
  if (existing !== undefined) return existing;
  const created = createPepper(path, dataDir, random);
  onCreated?.(path);
  return created;
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

function createPepper(
  path: string,
  dataDir: string,
  random: (target: Uint8Array) => Uint8Array,
): Secret {
  const text = Buffer.from(random(new Uint8Array(32))).toString("hex");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(path, `${text}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    // Another process was faster: its pepper is the one.
    const existing = readPepper(path);
    if (existing === undefined) throw error;
    return existing;
  }
  return new Secret(text);
}
