// Parses AsyncAPI documents with the official parser that is installed in the folder named first, checks every
// example against its schemas, and prints what both have to say: a JSON array, one entry per document.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(join(folder, "node_modules", "here.js"));
const { Parser } = require("@asyncapi/parser");
const Ajv = require("ajv");
const formats = require("ajv-formats");

const SEVERITIES = ["error", "warning", "info", "hint"];
const ajv = formats(new Ajv({ strict: false, allErrors: true }));

function complaints(schema, value, path) {
  const validate = ajv.compile(schema.json());
  if (validate(value)) return [];
  return validate.errors.map(({ instancePath, message }) => ({
    severity: "error",
    code: "example",
    path: path + instancePath,
    message,
  }));
}

function examplesOf(message) {
  return message.examples().all().flatMap((example) => {
    const path = `${message.id()}/examples/${example.name()}`;
    return [
      ...complaints(message.headers(), example.headers(), `${path}/headers`),
      ...complaints(message.payload(), example.payload(), `${path}/payload`),
    ];
  });
}

async function verdictOn(file) {
  const { document, diagnostics } = await new Parser().parse(readFileSync(file, "utf8"));
  const parsed = diagnostics.map(({ severity, code, path, message }) => ({
    severity: SEVERITIES[severity],
    code,
    path: path.join("/"),
    message,
  }));
  const messages = document ? document.components().messages().all() : [];
  const examples = messages.reduce((count, message) => count + message.examples().all().length, 0);
  return { found: [...parsed, ...messages.flatMap(examplesOf)], messages: messages.length, examples };
}

const verdicts = [];
for (const file of files) verdicts.push(await verdictOn(file));
console.log(JSON.stringify(verdicts));
