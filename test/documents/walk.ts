import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { errorCode } from "../../src/domain/system-files.ts";
import { freePort } from "../support/free-port.ts";
import { addressesIn } from "../support/sluice-process.ts";
import { type CommandBlock, patternOf } from "./blocks.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Words of a document that stand for an earlier output: `key_5Jm...`, `sk-slc_...`. */
const placeholder = /\b((?:[a-z]+-)*[a-z]+_)\w*\.\.\./g;
const identifier = /\b((?:[a-z]+-)*[a-z]+_)\w{8,}/g;
/** Ports of the documents, and what `npm start` gets instead. */
const documentedPorts = { data: "127.0.0.1:8080", admin: "127.0.0.1:8081" };

/** A reader with a fresh clone of the committed tree, who pastes one block after the other. */
export class Walk implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "sluice-walk-"));
  readonly #ports = { data: `127.0.0.1:${freePort()}`, admin: `127.0.0.1:${freePort()}` };
  readonly #seen = new Map<string, string>();
  /** Process groups that may still have members. */
  readonly #groups = new Set<number>();
  #gateway: Bun.Subprocess | undefined;

  constructor() {
    const cloned = Bun.spawnSync(["git", "clone", "--quiet", root, this.#clone]);
    if (cloned.exitCode !== 0) throw new Error(cloned.stderr.toString());
    symlinkSync(join(root, "node_modules"), join(this.#clone, "node_modules"));
    mkdirSync(this.#programs);
    mkdirSync(this.#home);
    const npm = npmScript(Bun.which("npm") ?? "npm");
    writeFileSync(join(this.#programs, "npm"), npm, { mode: 0o755 });
    writeFileSync(this.#exports, "");
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.#clone, name), this.#withPorts(text));
  }

  /** Runs a block; resolves to an explanation when it did not do what the document says. */
  async run({ text, output, line }: CommandBlock): Promise<string | undefined> {
    const script = this.#withPorts(text).replaceAll(placeholder, (_, prefix: string) => {
      return this.#seen.get(prefix) ?? `${prefix}not-printed-before`;
    });
    const wanted = output === undefined ? undefined : patternOf(output);
    const result = /\bnpm start\b/.test(script)
      ? await this.#serve(script, wanted ?? /^/)
      : await this.#runToEnd(script);
    this.#remember(result.text);
    const isAsShown = wanted === undefined || wanted.test(result.text);
    if (result.exitCode === 0 && isAsShown) return undefined;
    return `line ${line}: exit code ${result.exitCode}\n${script}\nprinted:\n${result.text}`;
  }

  /** Also ends what a test that took too long has left running. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    for (const group of this.#groups) signalGroup(group, "SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #clone(): string {
    return join(this.#folder, "sluice");
  }

  /** npm keeps logs and a folder for each project there. */
  get #home(): string {
    return join(this.#folder, "home");
  }

  get #programs(): string {
    return join(this.#folder, "programs");
  }

  /** What earlier blocks have exported, as in one terminal. */
  get #exports(): string {
    return join(this.#folder, "exports");
  }

  #withPorts(text: string): string {
    return text
      .replaceAll(documentedPorts.data, this.#ports.data)
      .replaceAll(documentedPorts.admin, this.#ports.admin)
      .replaceAll(/\bnpm start\b/g, (start) => {
        return `${start} -- --data ${this.#ports.data} --admin ${this.#ports.admin}`;
      });
  }

  #withoutPorts(text: string): string {
    return text
      .replaceAll(this.#ports.data, documentedPorts.data)
      .replaceAll(this.#ports.admin, documentedPorts.admin)
      .replaceAll(/^npm warn .*\n/gm, "");
  }

  #spawn(script: string): Bun.Subprocess<"ignore", "pipe", "inherit"> {
    const path = `${this.#programs}:${process.env["PATH"] ?? ""}`;
    const child = Bun.spawn(["sh", "-e", "-c", `exec 2>&1\n. "${this.#exports}"\n${script}`], {
      cwd: this.#clone,
      // Its own process group, so that a Ctrl-C reaches npm and the gateway.
      detached: true,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
      env: { PATH: path, HOME: this.#home, NO_COLOR: "1" },
    });
    this.#groups.add(child.pid);
    return child;
  }

  async #runToEnd(script: string): Promise<Printed> {
    const child = this.#spawn(`${script}\nexport -p > "${this.#exports}"`);
    const text = await new Response(child.stdout).text();
    const exitCode = await child.exited;
    this.#groups.delete(child.pid);
    return { exitCode, text: this.#withoutPorts(text) };
  }

  /** Starts a gateway, in place of the one that runs, and waits until it has printed its text. */
  async #serve(script: string, wanted: RegExp): Promise<Printed> {
    await this.#stop();
    const child = this.#spawn(script);
    this.#gateway = child;
    let text = "";
    let isReady = false;
    const decoder = new TextDecoder();
    const reading = Promise.withResolvers<void>();
    void (async () => {
      for await (const chunk of child.stdout) {
        if (isReady) continue;
        text = this.#withoutPorts(text + decoder.decode(chunk, { stream: true }));
        isReady = wanted.test(text) && addressesIn(text) !== undefined;
        if (isReady) reading.resolve();
      }
      reading.resolve();
    })();
    await reading.promise;
    return { exitCode: isReady ? 0 : await child.exited, text };
  }

  async #stop(): Promise<void> {
    if (this.#gateway === undefined) return;
    signalGroup(this.#gateway.pid, "SIGINT");
    await this.#gateway.exited;
    this.#gateway = undefined;
  }

  #remember(text: string): void {
    for (const [found, prefix = ""] of text.matchAll(identifier)) this.#seen.set(prefix, found);
  }
}

interface Printed {
  readonly exitCode: number;
  readonly text: string;
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

/** `node_modules` is linked and the tests run already, so that neither is done again. */
function npmScript(npm: string): string {
  return `#!/bin/sh\ncase "$1" in ci|test) exit 0 ;; esac\nexec "${npm}" "$@"\n`;
}
