import { fileURLToPath } from "node:url";
import { addressesIn } from "./sluice-process.ts";
import { until } from "./ledger-truth-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** As typed in the folder of the program. */
export const serveCommand = [process.execPath, "src/main.ts", "serve"];

/** A gateway in the foreground of a terminal, started like by a shell or npm. */
export class TerminalSession implements AsyncDisposable {
  readonly #child: ReturnType<typeof Bun.spawn>;
  #text = "";

  constructor(command: readonly string[]) {
    this.#child = Bun.spawn([...command], {
      cwd: root,
      env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
      terminal: { data: (_, bytes) => void (this.#text += Buffer.from(bytes).toString()) },
    });
  }

  /** Everything that was printed. */
  get text(): string {
    return this.#text;
  }

  get exited(): Promise<number> {
    return this.#child.exited;
  }

  async listening(): Promise<{ readonly dataUrl: string; readonly adminUrl: string }> {
    await until("it listens", () => addressesIn(this.#text) !== undefined);
    return addressesIn(this.#text) ?? { dataUrl: "", adminUrl: "" };
  }

  /** A letter with the control key. */
  pressControl(letter: "C" | "S" | "Q"): void {
    this.#child.terminal?.write(String.fromCharCode(letter.charCodeAt(0) - 64));
  }

  /** To every process in the foreground of the terminal, as an init system does. */
  signalGroup(name: NodeJS.Signals): void {
    process.kill(-this.#child.pid, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.signalGroup("SIGKILL");
    await this.#child.exited;
    this.#child.terminal?.close();
  }
}
