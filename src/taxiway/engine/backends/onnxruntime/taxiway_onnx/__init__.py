"""A Python-based Triton backend for ONNX models that reads the configuration of the native one.

    graph.py      model file -> session; does the configuration describe this graph?
    parameter.py  the contract parameter, read into rules                            (numpy only)
    rules.py      which values a request may bring, beyond types and dims            (numpy only)
    words.py      how a refusal speaks of places, values and what is accepted        (numpy only)
    serve.py      what the stub calls: load once, answer batches
    step.py       a Python step in front of the model: starts its process and asks it       (numpy only)
    worker.py     that process, in an environment of its own                                (numpy, pandas)
    frames.py     how the two exchange tensors                                              (numpy only)

Runs on Python 3.11 and 3.12 with numpy 1.26 and ONNX Runtime, and nothing else of the product.
"""
