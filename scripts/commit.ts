/** The commit of this checkout, short enough to read and long enough to be unique. */
export function commitOfCheckout(): string {
  const { stdout } = Bun.spawnSync(["git", "rev-parse", "--short=12", "HEAD"], {
    cwd: import.meta.dir,
  });
  return stdout.toString().trim() || "unknown";
}
