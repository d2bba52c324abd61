import { expect, test } from "bun:test";
import * as stable from "@opentelemetry/semantic-conventions";
import * as incubating from "@opentelemetry/semantic-conventions/incubating";
import {
  metricNames,
  names,
  operations,
  ownNames,
  schemaUrl,
} from "../../src/telemetry/otlp/conventions.ts";
import packages from "../../package.json" with { type: "json" };
import { readDocument } from "../support/documents.ts";

/** Every name and value of the conventions, in the version of the package. */
const known = new Set<unknown>();
for (const exported of [stable, incubating]) {
  for (const value of Object.values<unknown>(exported)) known.add(value);
}

test.each(Object.values({ ...names, ...metricNames, ...operations }))(
  "%s is in the conventions of OpenTelemetry",
  (name) => expect(known).toContain(name),
);

test("the version of the conventions is that of the package with their names", () => {
  const version = packages.devDependencies["@opentelemetry/semantic-conventions"];
  const [major, minor] = version.split(".");
  expect(schemaUrl).toBe(`https://opentelemetry.io/schemas/${major}.${minor}.0`);
});

test("names of Sluice's own are not in the conventions", () => {
  for (const name of Object.values(ownNames)) {
    expect(name).toStartWith("sluice.");
    expect(known).not.toContain(name);
  }
});

test("the document lists every attribute of Sluice's own, and the metrics with other names", () => {
  const page = readDocument("docs/observability.md");
  for (const name of Object.values({ ...metricNames, ...ownNames })) {
    expect(page).toContain(`\`${name}\``);
  }
});
