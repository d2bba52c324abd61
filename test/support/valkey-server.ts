import { afterAll, beforeAll, describe } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quietPort } from "./free-port.ts";
import { isComplete } from "./requirement.ts";

/** A Valkey or Redis server on a loopback port, gone with its data when it is disposed of. */
export interface ValkeyServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Freezes the server, or lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Ends the server as a crash would. Only what `SAVE` has written is left when it starts again. */
  kill(): Promise<void>;
  /** `settings`: in place of those of its first start. */
  start(settings?: readonly string[]): Promise<void>;
  /** Runs one command on a connection of its own. */
  command(name: string, ...parameters: string[]): Promise<unknown>;
}

/** Null where no server is installed. */
export const valkeyProgram = Bun.which("valkey-server") ?? Bun.which("redis-server");

/** Describes what needs a server; skipped where none is installed, except in a complete run. */
export function describeWithValkey(body: () => void): void {
  if (valkeyProgram !== null || isComplete) describe("with a Valkey server", body);
  else {
    process.stdout.write("skipped: neither valkey-server nor redis-server is installed\n");
    describe.skip("with a Valkey server", body);
  }
}

/**
 * A server that processes trust at once, as if it had had its data for long, unless it needs a
 * password. `settings`: of its configuration, such as `["--requirepass", "secret"]`.
 */
export async function startValkey(settings: readonly string[] = []): Promise<ValkeyServer> {
  if (valkeyProgram === null) throw new Error("no Valkey or Redis server is installed");
  const server = new LocalServer(valkeyProgram, settings);
  await server.start();
  await server.command("SET", "sluice:{0}:since", "0::").catch(() => undefined);
  return server;
}

/** A server for the tests of one block. */
export function valkeyOfTests(): { readonly server: ValkeyServer } {
  let server: ValkeyServer | undefined;
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  return {
    get server() {
      if (server === undefined) throw new Error("the server starts before the first test");
      return server;
    },
  };
}

class LocalServer implements ValkeyServer {
  readonly port = quietPort();
  readonly url = `valkey://127.0.0.1:${this.port}`;
  readonly #program: string;
  readonly #settings: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "sluice-valkey-"));
  #server: Bun.Subprocess | undefined;

  constructor(path: string, settings: readonly string[]) {
    this.#program = path;
    this.#settings = settings;
  }

  async start(settings = this.#settings): Promise<void> {
    const listen = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#folder];
    const command = [this.#program, ...listen, "--save", "", "--appendonly", "no"];
    const output = { stdout: "ignore", stderr: "ignore" } as const;
    this.#server = Bun.spawn([...command, ...settings], output);
    while (!(await this.#answers())) await Bun.sleep(20);
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#server?.kill(name);
  }

  async kill(): Promise<void> {
    this.#server?.kill("SIGKILL");
    await this.#server?.exited;
  }

  async command(name: string, ...parameters: string[]): Promise<unknown> {
    const client = new Bun.RedisClient(this.url, { autoReconnect: false });
    try {
      await client.connect();
      return await client.send(name, parameters);
    } finally {
      client.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A server with a password or certificates also answers, with a refusal. */
  async #answers(): Promise<boolean> {
    if (this.#server?.exitCode !== null) throw new Error("the server ended at its start");
    try {
      using _socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: this.port,
        socket: { data: () => undefined },
      }).then((socket) => ({ [Symbol.dispose]: () => void socket.end() }));
      return true;
    } catch {
      return false;
    }
  }
}
