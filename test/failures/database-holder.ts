/** Another process that locks a database. */
export interface DatabaseHolder extends AsyncDisposable {
  /** Unlocks; resolves when the process has ended. */
  release(): Promise<void>;
}

/**
 * `write`: an exclusive transaction; others can still read. `everything`: others cannot even read,
 * which is possible only while nobody has the database open.
 */
export type Hold = "write" | "everything";

const program = `
  const { Database } = require("bun:sqlite");
  const [path, hold] = process.argv.slice(-2);
  const database = new Database(path);
  database.run("PRAGMA busy_timeout = 5000");
  if (hold === "everything") database.run("PRAGMA locking_mode = EXCLUSIVE");
  database.run("BEGIN EXCLUSIVE");
  console.log("held");
  process.stdin.once("data", () => { database.run("ROLLBACK"); database.close(); process.exit(0); });
`;

/** Resolves once the database is locked. */
export async function holdDatabase(path: string, hold: Hold): Promise<DatabaseHolder> {
  const child = Bun.spawn([process.execPath, "-e", program, "--", path, hold], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  if (!new TextDecoder().decode(value).startsWith("held")) {
    throw new Error(`${path} cannot be held`);
  }
  const release = async (): Promise<void> => {
    if (child.exitCode !== null) return;
    void child.stdin.write("go\n");
    await child.stdin.end();
    await child.exited;
  };
  return {
    release,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
