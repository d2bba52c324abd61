import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";

const clock = fileURLToPath(new URL("./clock.ts", import.meta.url));

// In a process of its own, since the runtime warns once; standard error is for the log alone.
test("a time that has passed already runs soon, without a word of the runtime", async () => {
  const program =
    `import { systemClock } from ${JSON.stringify(clock)}; ` +
    `systemClock.schedule(() => console.log("ran"), -1);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stderr: "pipe" });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect([output, errors]).toEqual(["ran\n", ""]);
});
