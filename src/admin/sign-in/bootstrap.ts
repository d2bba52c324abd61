import { rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { randomBase62, type RandomBytes } from "../../domain/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Secret } from "../../domain/secret.ts";
import type { ControlStore, ControlView } from "../../storage/control-store.ts";
import { isSameText } from "./same-text.ts";
import { sha256 } from "./sessions.ts";

/** A token that lay about unused for so long may have been seen by others. */
const lifetimeMs = 60 * 60 * 1000;

export interface BootstrapOptions {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Of the configuration; undefined: one is made. */
  readonly token: Secret | undefined;
  /**
   * A file in which the token's digest is kept, so that a restart within its time neither tells
   * another one nor begins its time anew. Undefined: each start does.
   */
  readonly path?: string | undefined;
  /** Tells whoever started the process. `isConfigured`: they know it already. */
  readonly onBootstrapToken: (token: {
    readonly text: string;
    readonly isConfigured: boolean;
  }) => void;
}

/** Lets the first operator be made with a token that is told once and works once. */
export class Bootstrap {
  readonly #options: BootstrapOptions;
  #pending: { readonly digest: string; readonly expiresAt: number } | undefined;

  constructor(options: BootstrapOptions) {
    this.#options = options;
  }

  /** Tells the token if there is no operator yet. Throws `StorageUnavailable`: call it again. */
  async start(): Promise<void> {
    const { store, clock, random, token, path, onBootstrapToken } = this.#options;
    if (this.#pending !== undefined || (await store.read(hasOperator))) return;
    if (await this.#resume()) return;
    const text = token?.reveal() ?? randomBase62(43, random);
    const digest = sha256(text);
    this.#pending = { digest, expiresAt: clock.monotonic() + lifetimeMs };
    onBootstrapToken({ text, isConfigured: token !== undefined });
    if (path === undefined) return;
    const kept = `${digest} ${clock.now() + lifetimeMs}`;
    // Where it cannot be kept, the next start tells another one.
    await writeFile(path, kept, { mode: 0o600 }).catch(() => undefined);
  }

  /** Goes on with the token of the process before, if its time is not over. */
  async #resume(): Promise<boolean> {
    const { clock, token, path = "" } = this.#options;
    const text = await readFile(path, "utf8").catch(() => "");
    const [, digest, until] = /^([0-9a-f]{64}) ([0-9]{1,15})$/.exec(text) ?? [];
    const leftMs = Math.min(Number(until) - clock.now(), lifetimeMs);
    if (digest === undefined || !(leftMs > 0)) return false;
    if (token !== undefined && sha256(token.reveal()) !== digest) return false;
    this.#pending = { digest, expiresAt: clock.monotonic() + leftMs };
    return true;
  }

  /** Whether a text is the token and its time is not over. */
  isRight(text: string): boolean {
    const isSame = isSameText(sha256(text), this.#pending?.digest ?? sha256(""));
    const expiresAt = this.#pending?.expiresAt ?? -Infinity;
    return isSame && this.#options.clock.monotonic() < expiresAt;
  }

  /** There is an operator now: the token is worth nothing any more. */
  end(): void {
    this.#pending = undefined;
    const { path } = this.#options;
    try {
      if (path !== undefined) rmSync(path, { force: true });
    } catch {
      // What stays is read by nobody where there is an operator.
    }
  }
}

export async function hasOperator(view: ControlView): Promise<boolean> {
  const { items } = await view.users.list({ role: "operator" }, { limit: 1 });
  return items.length > 0;
}
