/*
 * Results of node's test runner as plain TAP: what prove reads, and with the
 * cause of a failure as comments.
 */

const comment = (text) => text.split('\n').map((line) => `# ${line}\n`).join('');

function cause(error) {
  const inner = error?.cause ?? error;

  return inner instanceof Error ? inner.stack : String(inner);
}

export default async function* tap(events) {
  let count = 0;

  for await (const { type, data } of events) {
    switch (type) {
      case 'test:pass':
      case 'test:fail': {
        const passed = type === 'test:pass';
        const skip = data.skip ? ` # SKIP ${data.skip}` : '';

        if (data.nesting > 0) {
          break;
        }
        count += 1;
        yield `${passed ? 'ok' : 'not ok'} ${count} - ${data.name}${skip}\n`;
        yield comment(`took ${Math.round(data.details.duration_ms)} ms`);
        if (!passed) {
          /* prove shows what is said here without being asked */
          process.stderr.write(comment(`${data.name}\n${cause(data.details.error)}`));
        }
        break;
      }
      case 'test:diagnostic':
        yield comment(data.message);
        break;
      case 'test:stderr':
      case 'test:stdout':
        yield comment(data.message.trimEnd());
        break;
      default:
    }
  }
  yield `1..${count}\n`;
}
