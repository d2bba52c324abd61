/**
 * Takes pictures of all pages of the console with some traffic in them, to look at:
 * `npm run screenshots -- FOLDER`. Pages are those of the navigation, and those of a key.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { type ConsoleWorld, operator, startConsole, type Visit } from "./support.ts";

const [folder = "screenshots"] = process.argv.slice(2);
const target = resolve(folder);
const shots = [
  { theme: "light", width: 1440 },
  { theme: "dark", width: 1440 },
  { theme: "light", width: 390 },
  { theme: "dark", width: 390 },
] as const;
const models = ["alpha-sonnet-4", "alpha-haiku-3.5", "no-such-model"];
/** Time for the live stream and for rows of the ledger to arrive. */
const settleMs = 1_500;

mkdirSync(target, { recursive: true });
await using world = await startConsole();
const paths = await fill(world);
for (const { theme, width } of shots) {
  await using visit = await world.signedIn(operator, { theme, width });
  for (const [name, path] of [...(await linksOf(visit)), ...paths]) {
    await visit.page.goto(visit.url + path);
    await visit.page.getByRole("heading", { level: 1 }).waitFor();
    await Bun.sleep(settleMs);
    await visit.page.screenshot({
      path: join(target, `${name}-${theme}-${width}.png`),
      animations: "disabled",
    });
  }
}
process.stdout.write(`${target}\n`);

/** A name of the picture's file, and a path. */
type NamedPath = readonly [name: string, path: string];

async function linksOf({ page }: Visit): Promise<readonly NamedPath[]> {
  const links = await page.locator("a.nav-link").all();
  const paths = await Promise.all(links.map((link) => link.getAttribute("href")));
  return paths.flatMap((path): NamedPath[] =>
    path === null ? [] : [[path.slice(1) || "home", path]],
  );
}

/** Two customers with keys, one near its limit, one that rotates, and calls. Returns their pages. */
async function fill(filled: ConsoleWorld): Promise<readonly NamedPath[]> {
  const admin: ConsoleWorld["admin"] = (...request) => filled.admin(...request);
  const paths: NamedPath[] = [];
  for (const name of ["Shop Team", "Research"]) {
    const account = await admin("POST", "/accounts", { name, plans: ["standard", "pro"] });
    const limit = name === "Research" ? "0.06" : "0.50";
    const budget = { account_id: account.id, limit_usd: limit, period: "month", mode: "warn" };
    await admin("POST", "/budgets", budget);
    for (const application of ["checkout", "assistant"]) {
      const owner = { account_id: account.id, environment: "local", name: application };
      const { id } = await admin("POST", "/applications", owner);
      const isNear = application === "checkout";
      const issued = await admin("POST", "/keys", {
        application_id: id,
        name: `${application} ${name === "Research" ? "nightly" : "web"}`,
        plan: isNear ? "enterprise" : "standard",
        ...(isNear && { limits: { requests_per_minute: 30, tokens_per_minute: 50_000 } }),
      });
      await Promise.all(
        Array.from({ length: 27 }, (_, index) =>
          call(filled.gateway.dataUrl, String(issued.api_key), index),
        ),
      );
      paths.push([isNear ? "key" : "key-rotating", `/keys/${issued.key.id}`]);
      if (isNear) continue;
      await admin("POST", `/keys/${issued.key.id}/rotate`, {});
      paths.push(["rotation", `/keys/${issued.key.id}/rotate`]);
    }
  }
  return paths.slice(0, 3);
}

async function call(url: string, key: string, index: number): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: models[index % 9 === 8 ? 2 : index % 2],
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello! ".repeat(1 + (index % 7) * 20) }],
    }),
  });
  await response.text();
}
