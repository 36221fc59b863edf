"""What a person says of the contract, laid over what was inferred.

The `contract:` part of taxiway.yaml narrows or widens the inferred contract:

    contract:
      inputs:
        X:
          finite: true            # the whole tensor; a column that says `nullable` is an exception
          columns:
            age: {min: 0, max: 120}
            income: {nullable: true}
        item_ids: {max_length: 100, same_length_as: null}
        city: {allowed: [Bern, Oslo], max_bytes: 64}
      outputs:
        probabilities: {min: 0, max: 1}

What is said of a tensor holds for all its columns, what is said of a column goes before it, and null takes a rule
away. A person may say more than the rows show, but not against them. Of an input, whatever would refuse a proved value
is refused here, since the golden samples would be refused at the first check; nor can values be accepted that the
model itself does not know. Of an output, whatever an answer of the notebook's model contradicts is refused: the engine
checks what it is asked and not what it answers, so that the recorded answers, those to made rows included, are all
that such a promise rests on. All mistakes are told at once.

Three steps, put together by `lay.py`: `words.py` checks what is said, `fit.py` whether a tensor of this type and shape
can have it; `merge.py` makes the new field; `evidence.py` asks what was recorded.
"""
