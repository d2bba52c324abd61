/** The gate, locally and in CI: types, format, lint, structure, lines, documents against code. */

interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** What it prints is worth reading when it passes, too. */
  readonly informs?: true;
}

const steps: readonly Step[] = [
  { name: "types", command: ["bun", "check", "--no-script"] },
  { name: "types of the console", command: ["bun", "check", "--no-script", "-p", "console/src"] },
  { name: "format", command: ["bun", "fmt", "--check", "--no-script"] },
  { name: "lint", command: ["oxlint", "--quiet"] },
  { name: "structure", command: ["bun", "scripts/check-structure.ts"] },
  { name: "lines", command: ["bun", "scripts/lines.ts"], informs: true },
  { name: "words", command: ["bun", "scripts/words.ts"] },
  {
    name: "documents",
    command: [
      "bun",
      "test",
      "--timeout=60000",
      "scripts/check-documents.test.ts",
      "scripts/check-prose.test.ts",
      "scripts/check-runbook.test.ts",
      "scripts/check-architecture.test.ts",
      "scripts/documents/config-reference.test.ts",
      "src/upstreams/bedrock/models/document.test.ts",
    ],
  },
];

process.exitCode = await main();

async function main(): Promise<number> {
  const failed: string[] = [];
  for (const { name, command, informs } of steps) {
    const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe" });
    const [output, errors, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    console.log(`${exitCode === 0 ? "ok    " : "FAILED"} ${name}`);
    if (exitCode === 0 && informs === true) console.log(output.trim());
    if (exitCode === 0) continue;
    failed.push(name);
    console.log(`${output}${errors}`.trim());
  }
  if (failed.length > 0) console.log(`\nThese steps failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}

export {};
