import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An in-memory file system for one test. */
export interface SmallDisk extends Disposable {
  readonly path: string;
  /** Leaves no byte free. */
  readonly fill: () => void;
  /** Frees the space that `fill` took. */
  readonly free: () => void;
  readonly makeReadOnly: () => void;
  readonly resize: (size: string) => void;
}

/** Whether this user may mount a small disk. */
export const canMount = isMounter();

export function mountDisk(size: string): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "sluice-disk-"));
  run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path);
  const ballast = join(path, "ballast");
  return {
    path,
    fill: () => fillWith(ballast),
    free: () => rmSync(ballast),
    makeReadOnly: () => run("mount", "-o", "remount,ro", path),
    resize: (larger) => run("mount", "-o", `remount,size=${larger}`, path),
    [Symbol.dispose]() {
      run("umount", path);
      rmSync(path, { recursive: true });
    },
  };
}

function fillWith(path: string): void {
  for (const bytes of [65_536, 4_096, 1]) {
    const piece = new Uint8Array(bytes);
    try {
      for (;;) appendFileSync(path, piece);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    }
  }
}

function isMounter(): boolean {
  if (process.getuid?.() !== 0 || Bun.which("mount") === null) return false;
  const path = mkdtempSync(join(tmpdir(), "sluice-disk-"));
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path]);
  if (mounted.exitCode === 0) run("umount", path);
  rmSync(path, { recursive: true });
  return mounted.exitCode === 0;
}

/** Limits the size of a process' files; undefined: to the maximum. */
export function limitFileSize(pid: number, bytes?: number): void {
  run("prlimit", "--pid", String(pid), `--fsize=${bytes ?? "unlimited"}:`);
}

function run(...command: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}

/**
 * Makes the writes of a process to these files fail as on a read-only disk, until the result is
 * called.
 */
export async function makeReadOnly(
  pid: number,
  paths: readonly string[],
): Promise<() => Promise<void>> {
  const calls = "openat,write,pwrite64,ftruncate,unlink,fdatasync";
  const place = ["-f", "-p", String(pid), "-o", "/dev/null"];
  const faults = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=EROFS`];
  const files = paths.flatMap((path) => ["-P", path]);
  const stdio = { stdin: "ignore", stdout: "ignore", stderr: "pipe" } as const;
  const child = Bun.spawn(["strace", ...place, ...faults, ...files], stdio);
  // Printed once it holds the process.
  await child.stderr.getReader().read();
  return async () => {
    child.kill("SIGINT");
    await child.exited;
  };
}

/** Whether this user may do so. */
export const canTrace = isTracer();

function isTracer(): boolean {
  if (Bun.which("strace") === null) return false;
  const traced = Bun.spawnSync(["strace", "-o", "/dev/null", "true"]);
  return traced.exitCode === 0;
}
