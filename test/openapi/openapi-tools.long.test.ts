import { afterAll, beforeAll, expect } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { testWhere } from "../support/requirement.ts";
import { goProgram, pythonProgram, typescriptProgram } from "./clients.ts";
import { goTools, nodeTools, pythonTools, run, type Tools } from "./tools.ts";

const [node, python, go] = [await nodeTools(), await pythonTools(), await goTools()];
const longMs = 600_000;

const compilerOptions = {
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  module: "esnext",
  moduleResolution: "bundler",
  target: "esnext",
  types: [],
};
const globals = "declare const process: { argv: string[] };";

let gateway: TestGateway;
let folder: string;
let document: string;
beforeAll(async () => {
  gateway = await startGateway();
  folder = mkdtempSync(join(tmpdir(), "sluice-openapi-"));
  document = join(folder, "openapi.json");
  const answer = await fetch(`${gateway.adminUrl}/admin/v1/openapi.json`);
  await Bun.write(document, await answer.text());
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await gateway[Symbol.asyncDispose]();
});

function testWith({ missing }: Tools): ReturnType<typeof testWhere> {
  return testWhere(missing === undefined, missing ?? "");
}

/** Address, token and application for a generated client. */
async function clientArguments(): Promise<readonly string[]> {
  const { token = "" } = readLocalAccess(gateway.config.dataDir) ?? {};
  const applications = await (await gateway.admin("GET", "/admin/v1/applications")).json();
  const schema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });
  const [application] = schema.parse(applications).data;
  return [gateway.adminUrl, token, application?.id ?? ""];
}

/** A key that a client printed works. */
async function expectKey(output: string): Promise<void> {
  const headers = { authorization: `Bearer ${output.trim()}` };
  const answer = await gateway.get("/v1/models", { headers });
  expect(answer.status).toBe(200);
}

function folderOf(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

testWith(node)(
  "swagger-parser finds the document valid",
  async () => {
    const program = `import parser from "@apidevtools/swagger-parser"; await parser.validate(process.argv[1]);`;
    await run(["node", "--input-type=module", "-e", program, document], node);
  },
  longMs,
);

testWith(node)(
  "redocly finds the document valid",
  async () => {
    const redocly = join(node.folder, "node_modules/.bin/redocly");
    const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
    const problems = await run([redocly, "lint", "--extends=spec", document], {
      ...node,
      environment,
    });
    expect(problems).not.toContain("error");
  },
  longMs,
);

testWith(python)(
  "openapi-spec-validator finds the document valid",
  async () => {
    await run([join(python.folder, "bin/openapi-spec-validator"), document], python);
  },
  longMs,
);

testWith(node)(
  "a generated client in TypeScript compiles and creates a key",
  async () => {
    const own = folderOf("typescript");
    cpSync(join(node.folder, "node_modules"), join(own, "node_modules"), { recursive: true });
    await Bun.write(join(own, "package.json"), '{ "type": "module" }');
    await Bun.write(join(own, "client.ts"), typescriptProgram);
    const tool = (name: string): string => join(own, "node_modules/.bin", name);
    await run([tool("openapi-typescript"), document, "-o", "schema.ts"], { folder: own });
    await Bun.write(join(own, "globals.d.ts"), globals);
    await Bun.write(join(own, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    await run([tool("tsc")], { folder: own });
    const command = [process.execPath, "client.ts", ...(await clientArguments())];
    await expectKey(await run(command, { folder: own }));
  },
  longMs,
);

testWith(python)(
  "a generated client in Python creates a key",
  async () => {
    const own = folderOf("python");
    const generator = join(python.folder, "bin/openapi-python-client");
    const generated = await run(
      [generator, "generate", "--path", document, "--output-path", "client", "--meta", "none"],
      { folder: own },
    );
    expect(generated).not.toContain("Unable to");
    await run(["mv", "client", "sluice_admin_api_client"], { folder: own });
    await Bun.write(join(own, "program.py"), pythonProgram);
    const interpreter = join(python.folder, "bin/python");
    await run([interpreter, "-m", "compileall", "-q", "."], { folder: own });
    const command = [interpreter, "program.py", ...(await clientArguments())];
    await expectKey(await run(command, { folder: own }));
  },
  longMs,
);

testWith(go)(
  "a generated client in Go compiles and creates a key",
  async () => {
    const own = folderOf("go");
    const generator = join(go.folder, "oapi-codegen");
    const options = ["-generate", "types,client", "-package", "main", "-o", "client.go"];
    await run([generator, ...options, document], { folder: own });
    await Bun.write(join(own, "program.go"), goProgram);
    await run(["go", "mod", "init", "example"], { folder: own });
    await run(["go", "mod", "tidy"], { folder: own });
    await run(["go", "vet", "."], { folder: own });
    const command = ["go", "run", ".", ...(await clientArguments())];
    await expectKey(await run(command, { folder: own }));
  },
  longMs,
);
