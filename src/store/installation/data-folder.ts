import {
  chmodSync,
  readFileSync,
  statSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  writeFileSync,
  existsSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { join, dirname } from "node:path";
import { type RandomBytes, randomBase62 } from "../../domain/keys/base62.ts";
import { Secret } from "../../domain/keys/secret.ts";

/** The id and the spool that a data directory holds of its installation. */
export class DataFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Undefined before the first database, and when the file is empty. */
  readId(): string | undefined {
    const id = readText(this.#idPath);
    return id === "" ? undefined : id;
  }

  keepId(id: string): void {
    if (this.readId() === id) return;
    rmSync(this.#idPath, { force: true });
    writeOnce(this.#idPath, `${id}\n`);
  }

  /** Names the gateway that uses this directory among those on its database. */
  machineId(random: RandomBytes): string {
    const path = join(this.path, "machine");
    if (!existsSync(path)) writeOnce(path, `mac_${randomBase62(16, random)}\n`);
    return readFileSync(path, "utf8").trim();
  }

  /** Whether a gateway of any version has used it with a database. */
  get wasUsed(): boolean {
    return existsSync(this.#idPath) || existsSync(pepperPath(this.path)) || this.hasCalls;
  }

  /** Whether the spool has calls that are not in the database yet. */
  get hasCalls(): boolean {
    const spool = join(this.path, "spool");
    if (!existsSync(spool)) return false;
    return readdirSync(spool, { encoding: "utf8", recursive: true }).some(
      (name) => name.endsWith(".spool") && statSync(join(spool, name)).size > 0,
    );
  }

  get #idPath(): string {
    return join(this.path, "installation");
  }
}

/**
 * Creates a small file, with its folder, for this user only and synced to disk. Throws when it
 * exists.
 */
function writeOnce(path: string, text: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(path, text, { flag: "wx", mode: 0o600, flush: true });
  const opened = openSync(folder, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/** The secret under which API keys are digested. Without it every key is lost. */
export interface Pepper {
  readonly secret: Secret;
  /** For messages: the setting or the file it comes from. */
  readonly source: string;
  /** Whether it was just generated and is not stored yet. */
  readonly isNew: boolean;
}

interface PepperOptions {
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
  const text = readText(path);
  if (text === undefined) return undefined;
  if (text.length < 32) throw new Error(`${path} holds no pepper of 32 characters or more`);
  chmodSync(path, 0o600);
  return new Secret(text);
}

/** Undefined: there is no file. */
function readText(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
