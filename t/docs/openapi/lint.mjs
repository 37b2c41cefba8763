// Lints one OpenAPI file with the recommended rules, warnings as errors:
//   node lint.mjs FILE
// A line per problem, and status 1 when there is any.

import { createConfig, lint } from '@redocly/openapi-core';

const config = await createConfig({ extends: ['recommended-strict'] });
const problems = await lint({ ref: process.argv[2], config });

for (const problem of problems) {
  const places = problem.location.map((place) => place.pointer ?? '');
  console.log(`${problem.ruleId}: ${problem.message} (${places.join(' ')})`);
}

process.exitCode = problems.length > 0 ? 1 : 0;
