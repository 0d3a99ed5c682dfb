"""YAML as strict parsers of others read it (Flux, kustomize): a key that is there twice in one map is an error. PyYAML takes the last one."""
import yaml


class LOADER(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):
    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f'{key.value} is there twice in one map', key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else key)
        return super().construct_mapping(node, deep)


def load(text):
    """All documents; yaml.MarkedYAMLError."""
    return [document for document in yaml.load_all(text, LOADER) if document]
