/** Runs named checks and says of each whether it passed, one line a check. */
export async function runChecks(checks) {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${name}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`failed: ${name}\n${error.stack ?? error}`);
    }
  }
}
