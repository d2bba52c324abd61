import { sluiceProgram } from "../../support/sluice-process.ts";

/** A part of this machine with a network of its own, which one cable joins to the rest. */
export class NetworkNamespace implements Disposable {
  readonly #name: string;
  readonly #cable: string;
  /** The address of this machine, seen from inside. */
  readonly outside: string;
  /** The address of the namespace, seen from outside. */
  readonly inside: string;

  /** Needs the rights of root. */
  constructor() {
    const { pid } = process;
    this.#name = `sluice-${pid}`;
    this.#cable = `slc${pid}`;
    // Four addresses of those for tests of networks, https://www.rfc-editor.org/rfc/rfc2544.
    const network = `198.${18 + ((pid >> 14) & 1)}.${(pid >> 6) & 255}`;
    const first = (pid & 63) * 4;
    this.outside = `${network}.${first + 1}`;
    this.inside = `${network}.${first + 2}`;
    ip("netns", "add", this.#name);
    try {
      ip("link", "add", this.#cable, "type", "veth", "peer", "name", "cable", "netns", this.#name);
      ip("address", "add", `${this.outside}/30`, "dev", this.#cable);
      ip("link", "set", this.#cable, "up");
      ip("-n", this.#name, "address", "add", `${this.inside}/30`, "dev", "cable");
      ip("-n", this.#name, "link", "set", "cable", "up");
      ip("-n", this.#name, "link", "set", "lo", "up");
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** What a command begins with that runs inside. */
  get prefix(): readonly string[] {
    return ["ip", "netns", "exec", this.#name];
  }

  cut(): void {
    ip("link", "set", this.#cable, "down");
  }

  heal(): void {
    ip("link", "set", this.#cable, "up");
  }

  /** A page that only the inside can see. */
  async read(url: string): Promise<string> {
    const [bun = ""] = sluiceProgram;
    const script = `process.stdout.write(await (await fetch("${url}")).text())`;
    const command = [...this.prefix, bun, "-e", script];
    return new Response(Bun.spawn(command, { stdout: "pipe", stderr: "ignore" }).stdout).text();
  }

  /** A namespace takes its cable along, but only some time later. */
  [Symbol.dispose](): void {
    Bun.spawnSync(["ip", "link", "delete", this.#cable]);
    ip("netns", "delete", this.#name);
  }
}

/** Whether this process may make namespaces. */
export function canMakeNamespaces(): boolean {
  if (Bun.which("ip") === null) return false;
  try {
    using _namespace = new NetworkNamespace();
    return true;
  } catch {
    return false;
  }
}

function ip(...command: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...command]);
  if (exitCode !== 0) throw new Error(`ip ${command.join(" ")}: ${stderr.toString()}`);
}
