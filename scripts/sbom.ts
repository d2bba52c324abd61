/**
 * Prints the bill of materials of what is installed in production, in CycloneDX:
 * `npm run -s sbom > sluice.cdx.json`. npm's own `--omit dev` also drops packages that development
 * needs as well, such as zod, so this leaves out what npm marks as development only.
 */
import { fileURLToPath } from "node:url";
import { z } from "zod";

const root = fileURLToPath(new URL("..", import.meta.url));
const component = z.looseObject({
  "bom-ref": z.string(),
  name: z.string(),
  properties: z.array(z.object({ name: z.string(), value: z.string() })),
});
const bill = z.looseObject({
  metadata: z.looseObject({ component }),
  components: z.array(component),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});
type Bill = z.infer<typeof bill>;

const options = ["--sbom-format", "cyclonedx", "--sbom-type", "application", "--package-lock-only"];
if (import.meta.main) console.log(billOfMaterials());

export function billOfMaterials(): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync(["npm", "sbom", ...options], { cwd: root });
  if (exitCode !== 0) throw new Error(`npm sbom: ${stderr.toString()}`);
  return JSON.stringify(inProduction(bill.parse(JSON.parse(stdout.toString()))), null, 2);
}

function inProduction({ metadata, components, dependencies, ...rest }: Bill): Bill {
  // What is private is part of the program.
  const others = ["cdx:npm:package:development", "cdx:npm:package:private"];
  const kept = components.filter(
    ({ properties }) => !properties.some(({ name }) => others.includes(name)),
  );
  const own = metadata.component["bom-ref"];
  const refs = new Set([own, ...kept.map((each) => each["bom-ref"])]);
  return {
    ...rest,
    // npm names the program after its folder.
    metadata: { ...metadata, component: { ...metadata.component, name: nameIn(own) } },
    components: kept,
    dependencies: dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) })),
  };
}

/** The name in `name@version`. */
function nameIn(reference: string): string {
  return reference.slice(0, reference.lastIndexOf("@"));
}
